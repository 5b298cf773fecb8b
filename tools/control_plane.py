"""Build the cluster that tests/cluster starts: etcd, Kubernetes without the kubelet, JobSet, Kueue, and KWOK's nodes.

Beside them, a program of tests/official. Prints the folder of the programs, which is kept in the cache under a key of
the sources, flags and Go's version; building takes eight minutes of CPU time, once. Messages go to stderr.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tool_cache import GO_BUILD, cache_folder, go_build, locked, log

MODULE: Final = Path(__file__).resolve().parent / "cluster"
LINKS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""The names under which the program of this module is a part of the control plane."""
JOBSET: Final = "sigs.k8s.io/jobset"
KUEUE: Final = "sigs.k8s.io/kueue"
PACKAGES: Final = (
    ".",
    "./refusals",
    "k8s.io/kubernetes/cmd/kubectl",
    JOBSET,
    f"{KUEUE}/cmd/kueue",
    "sigs.k8s.io/kwok/cmd/kwok",
)
"""The programs, each named by the last part of its package."""
_VERSION: Final = "k8s.io/component-base/version"


class BuildError(Exception):
    """There are no programs; the message names the fix."""


def _kubernetes() -> str:
    match = re.search(r"k8s\.io/kubernetes v([0-9.]+)", (MODULE / "go.mod").read_text())
    if match is None:
        raise BuildError(
            f"{MODULE / 'go.mod'} requires no k8s.io/kubernetes; restore that line from git"
        )
    return match[1]


def folder() -> Path:
    """Return the folder of the programs, which may not exist."""
    go = subprocess.run(
        ["go", "env", "GOVERSION"], capture_output=True, text=True, check=False
    ).stdout
    names = ("go.mod", "go.sum", "main.go", "refusals/main.go")
    content = b"".join((MODULE / name).read_bytes() for name in names)
    key = hashlib.sha256(content + " ".join((*GO_BUILD, go)).encode()).hexdigest()[:12]
    return cache_folder() / f"control-plane-{key}"


def find() -> Path | None:
    """Return the folder of the built programs; None if they are not built, or Go is missing."""
    return programs if shutil.which("go") and (programs := folder()).is_dir() else None


def module_folder(module: str) -> Path:
    """Return the folder of a module, such as JobSet's, which has its CRD and the declarations of its webhooks."""
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", module],
        cwd=MODULE,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(listed.stdout.strip())


def build() -> Path:
    """Build the programs into the cache and return their folder; a second caller waits for the first.

    Raises:
        BuildError: Go is missing, or the build failed.
    """
    if shutil.which("go") is None:
        raise BuildError(
            "Go is not installed, which builds the control plane: https://go.dev/doc/install"
        )
    target = folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.parent / ".control-plane.lock"):
        if not target.is_dir():
            _build(target)
    return target


def _build(target: Path) -> None:
    version = _kubernetes()
    major, minor, _ = version.split(".")
    numbers = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    flags = " ".join(
        ["-s -w", *(f"-X {_VERSION}.{name}={value}" for name, value in numbers.items())]
    )
    unfinished = target.with_name(f"{target.name}.unfinished")
    output_file = target.with_name("control-plane.log")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    log(
        f"building Kubernetes {version}, JobSet, Kueue and KWOK into {target} (eight minutes of CPU time, once)"
    )
    if go_build(MODULE, output_file, ["-ldflags", flags, "-o", f"{unfinished}/", *PACKAGES]):
        raise BuildError(f"`go build` failed; its output: {output_file}")
    for name in LINKS:
        (unfinished / name).symlink_to("cluster")
    # Renamed at the end, so that an interrupted build is never used.
    unfinished.rename(target)


def main(arguments: list[str] | None = None) -> int:
    """Print the folder of the programs; return 1 and print the reason if there is none."""
    parser = argparse.ArgumentParser(
        description="Build the control plane of tests/cluster, if it is not built."
    )
    parser.parse_args(arguments)
    try:
        print(build())
    except BuildError as error:
        log(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
