"""The kinds of real parts that tests run, such as a cluster, and which of them a change has to run whole.

The gate runs the telling cases of each kind. It runs all tests of a kind only if a file that
decides their results has changed since they last passed; tests/kinds/KIND has the hash of these files.

    python tools/gate.py select           prints the gate's tests as an expression for `pytest -m`
    python tools/gate.py changed          prints the kinds that run whole, one a line
    python tools/gate.py record KIND ...  notes that all tests of these kinds have passed
"""

import hashlib
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
RECORDS: Final = Path("tests", "kinds")

INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "browser": (
        "tests/browsing.py",
        "tests/charts",
        "tests/docs",
        "compiler/tpucfg/charts",
        "mkdocs.yml",
        "tools/build_site.py",
        "tools/copy_buttons.py",
    ),
    "cluster": (
        "tests/cluster",
        "tests/process.py",
        "tests/spec_factory.py",
        "compiler/tpucfg/targets/extra.py",
        "compiler/tpucfg/targets/gke",
        "compiler/tpucfg/targets/interface.py",
        "compiler/tpucfg/targets/objects.py",
        "templates/config.yaml.j2",
        "templates/gke",
        "tools/cluster",
        "tools/control_plane.py",
        "tools/tool_cache.py",
    ),
    "engine": (
        "tests/stacks",
        "tests/review/previews",
        "Pulumi.yaml",
        "compiler/tpucfg/infra",
        "compiler/tpucfg/stack",
        "requirements-infra.txt",
        "stacks",
        "templates/infra",
        "tools/go.mod",
        "tools/go.sum",
        "tools/pulumi_engine.patch",
        "tools/pulumi_engine.py",
        "tools/tool_cache.py",
    ),
    "fuzz": (
        "tests/fuzz",
        "tests/test_fuzz.py",
        "compiler/tpucfg/schemas",
        "compiler/tpucfg/spec",
        "compiler/tpucfg/yamldoc",
        "schema",
    ),
    "machine": (
        "tests/jobs.py",
        "tests/machine",
        "compiler/tpucfg/targets/cloud_tpu/request.py",
        "compiler/tpucfg/targets/compute_engine/request.py",
        "compiler/tpucfg/targets/hosts.py",
        "templates/cloud-tpu",
        "templates/compute-engine",
        "templates/hosts",
        "tools/machine_tree.py",
    ),
    "official": (
        "tests/official",
        "tests/trainer/requirements.txt",
        "tests/fit/requirements.txt",
        "requirements-dev.txt",
        "schema",
        "templates/gke",
    ),
    "programs": (
        "tests/attacks",
        "tests/changes",
        "tests/repositories.py",
        "tests/review",
        "compiler/tpucfg/changes",
        "compiler/tpucfg/git",
        "compiler/tpucfg/infra",
        "compiler/tpucfg/review",
        "compiler/tpucfg/stack",
        "requirements-infra.txt",
        "stacks",
        "templates/infra",
    ),
    "system": (
        "tests/crash_runner.py",
        "tests/e2e/test_wheel.py",
        "tests/e2e/test_writing.py",
        "compiler/tpucfg/__main__.py",
        "compiler/tpucfg/cli/app.py",
        "compiler/tpucfg/cli/exit_codes.py",
        "compiler/tpucfg/fs.py",
        "compiler/tpucfg/package_data.py",
        "compiler/tpucfg/render",
        "pyproject.toml",
        "tools/wheel_assets.py",
    ),
    "tpu_compiler": ("tests/fit", "compiler/tpucfg/fit/worker"),
    "trainer": ("tests/trainer", "templates/trainer"),
    "workflow": (
        "tests/github_runner.py",
        "tests/pull_request.py",
        "tests/workflows",
        ".github/actions",
        ".github/workflows",
        "docs/review-ci.md",
        "templates/workflow",
    ),
}
"""The files that decide the results of a kind's tests, as git's pathspecs."""


def main(arguments: list[str]) -> int:
    """Run one of the commands above; return 2 for any other."""
    match arguments:
        case ["select"]:
            print(selection(changed_kinds()))
        case ["changed"]:
            sys.stdout.writelines(f"{kind}\n" for kind in changed_kinds())
        case ["record", *kinds] if INPUTS.keys() >= {*kinds}:
            for kind in kinds:
                record(kind)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


def selection(whole: Iterable[str]) -> str:
    """Return the tests of the gate as an expression of marks, given the kinds that run whole; empty for all tests."""
    others = sorted(INPUTS.keys() - {*whole})
    return " or ".join(("telling", *whole, f"not ({' or '.join(others)})")) if others else ""


def changed_kinds() -> list[str]:
    """Return the kinds with a changed input."""
    return [kind for kind in INPUTS if _recorded(kind) != inputs_hash(kind)]


def inputs_hash(kind: str) -> str:
    """Return the hash of the paths and contents of a kind's inputs, as they are in the working tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    listed = subprocess.run([*command, *INPUTS[kind]], cwd=ROOT, capture_output=True, check=True)
    digest = hashlib.sha256()
    for name in sorted({*listed.stdout.decode().split("\0")}):
        path = ROOT / name
        if path.is_file():
            digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def record(kind: str) -> None:
    """Write the hash of a kind's inputs."""
    (ROOT / RECORDS / kind).write_text(f"{inputs_hash(kind)}\n", encoding="ascii")


def _recorded(kind: str) -> str:
    file = ROOT / RECORDS / kind
    return file.read_text(encoding="ascii").strip() if file.is_file() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
