"""The files of a new project: its spec, Pulumi program and stacks, the workflow, and optionally a trainer.

The workflow installs tpucfg from where this installation comes from, which an installer records in `direct_url.json`:
https://packaging.python.org/en/latest/specifications/direct-url/.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS, FirstLadder
from tpucfg.package_data import data_folder
from tpucfg.render.config import config_template_engine

IGNORE_FILE: Final = Path(".gitignore")
"""The file that keeps virtual environments and bytecode out of commits; a folder may have one already."""
_TWO_RUNGS: Final = FirstLadder("us-central1", ("v2-8", "v2-32"))
_TWO_RUNGS_ON_GKE: Final = FirstLadder("us-central1", ("v5litepod-4", "v5litepod-16"))
_SINGLE_HOST_OF_V6E: Final = FirstLadder("us-central1", ("v6e-4", "v6e-8"))
"""No page settles if Compute Engine takes several hosts on demand."""
_SINGLE_HOST: Final = FirstLadder("us-central1", ("v5litepod-4", "v5litepod-8"))
"""TensorFlow on several hosts needs a server process on each of them: https://cloud.google.com/tpu/docs/runtimes."""

TRAINERS: Final[Mapping[str, Mapping[str, FirstLadder]]] = {
    "jax": {
        "vertex-ai": _TWO_RUNGS,
        "cloud-tpu": _TWO_RUNGS,
        "compute-engine": _SINGLE_HOST_OF_V6E,
        "gke": _TWO_RUNGS_ON_GKE,
    },
    "tensorflow": {
        "vertex-ai": _SINGLE_HOST,
        "cloud-tpu": _SINGLE_HOST,
        "gke": _SINGLE_HOST,
        "ai-platform": TARGET_FACTS["ai-platform"].first_ladder,
    },
}
"""The example trainers by framework, with the targets that each runs on and its ladder there.

AI Platform Training reaches its TPUs over a network, which JAX cannot do. The ladders are short because the plain
optimizer of the trainers does not suit a batch that grew 8-fold.
"""


def project_files(
    *, name: str, target: str, requirement: str, trainer: str | None = None, infra: bool = False
) -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each file of a new project, except its workflow.

    Args:
        name: The project's name.
        target: The target; with a trainer, one that TRAINERS lists for it.
        requirement: What pip installs tpucfg from; empty if that is not known.
        trainer: A framework of TRAINERS; None for a project without an example trainer.
        infra: True for a project with the Pulumi program and its stacks.
    """
    ladder = TRAINERS[trainer][target] if trainer else TARGET_FACTS[target].first_ladder
    values = {
        "name": name,
        "target": target,
        "trainer": trainer,
        "requirement": requirement,
        **ladder._asdict(),
    }
    parts = {"init": Path()}
    if infra:
        parts["infra"] = Path()
    if trainer:
        parts |= {"trainer/common": Path("trainer"), f"trainer/{trainer}": Path("trainer")}
    for part, folder in parts.items():
        for path, text in _render_folder(part, folder, values):
            if path != IGNORE_FILE or infra or trainer:  # a spec alone needs no virtual environment
                yield path, text
    for schema in ("tpucfg", "stack") if infra else ("tpucfg",):
        path = Path("schema") / f"{schema}.schema.json"
        yield path, (data_folder("schema") / path.name).read_text(encoding="utf-8")


def workflow_files(requirement: str) -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each file of the workflows that review pull requests and update stacks.

    Args:
        requirement: What pip installs tpucfg from.
    """
    yield from _render_folder("workflow", Path(), {"requirement": requirement})
    # A copy of the actions, so that the workflow depends on no other repository.
    actions = data_folder(".github/actions")
    for path in sorted(actions.rglob("*.*")):
        yield (
            Path(".github", "actions") / path.relative_to(actions),
            path.read_text(encoding="utf-8"),
        )


def _render_folder(
    source: str, target: Path, values: Mapping[str, Any]
) -> Iterator[tuple[Path, str]]:
    """Yield the files below a folder of templates/: those ending in .j2 rendered, all others unchanged."""
    root = data_folder("templates") / source
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.suffix == ".j2":
            template = config_template_engine().get_template(f"{source}/{relative.as_posix()}")
            yield target / relative.with_suffix(""), template.render(values)
        elif path.is_file() and path.suffix != ".pyc":
            yield target / relative, path.read_text(encoding="utf-8")


INSTALL_INFRA: Final = "pip install '/path/to/clone[infra]'"
"""The command that adds Pulumi's packages."""
FORMS: Final = (
    "git+https://HOST/PATH@COMMIT, with all 40 digits of the commit",
    "https://HOST/PATH/tpucfg-VERSION-py3-none-any.whl#sha256=HASH",
)
"""The two forms of an address whose content cannot change."""
EXAMPLE: Final = "git+https://github.com/OWNER/tpucfg@COMMIT"

# Only characters that need no quotes in a shell or in YAML. There is no user or password: the address is committed.
_PATH: Final = r"https://[A-Za-z0-9.-]+(?::[0-9]+)?/[A-Za-z0-9._~/%+-]+"
_GIT: Final = re.compile(rf"git\+{_PATH}@(?:[0-9a-f]{{40}}|[0-9a-f]{{64}})")
_WHEEL: Final = re.compile(rf"{_PATH}/tpucfg-[A-Za-z0-9._%+-]+\.whl#sha256=[0-9a-f]{{64}}")
"""Not an sdist, as pip would build it with packages that no lock has."""


class UnknownSourceError(Exception):
    """Another machine cannot install this program from where it came from; the message is the reason."""

    def __init__(self) -> None:
        super().__init__(
            "this tpucfg was not installed from an address that is public and pinned by a commit or a hash"
        )


def requirement_of(address: str) -> str:
    """Return the requirement for an address in one of FORMS.

    Raises:
        ValueError: The address has another form.
    """
    if not (_GIT.fullmatch(address) or _WHEEL.fullmatch(address)):
        raise ValueError(address)
    return f"tpucfg[infra] @ {address}"


def installed_requirement() -> str:
    """Return the requirement for the origin of this installation.

    Raises:
        UnknownSourceError: It is not known, or only this machine can read it.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        # Without a record it is from the package index, where anyone could register the name.
        return requirement_of_origin(distribution("tpucfg").read_text("direct_url.json") or "")
    except PackageNotFoundError:
        raise UnknownSourceError from None


def requirement_of_origin(origin: str) -> str:
    """Return the requirement for the content of a `direct_url.json`.

    Raises:
        UnknownSourceError: The origin is not public, or not pinned.
    """
    try:
        return requirement_of(_address(json.loads(origin)))
    except (ValueError, TypeError, AttributeError, KeyError):
        raise UnknownSourceError from None


def _address(origin: Any) -> str:
    if "vcs_info" in origin:
        return f"{origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}"
    return f"{origin['url'].partition('#')[0]}#sha256={origin['archive_info']['hashes']['sha256']}"
