"""The files of a new project: its spec, its Pulumi program and stacks, a workflow, and a trainer to begin with."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tpucfg import __version__
from tpucfg.package_data import data_folder
from tpucfg.render.pipeline import config_environment


class _Start(NamedTuple):
    """Where a ladder begins on a target: sizes that it takes, in a region that has them all."""

    region: str
    sizes: tuple[str, ...]


_STARTS: Final = {
    "vertex-ai": _Start("us-central1", ("v2-8", "v2-32", "v2-128")),
    "cloud-tpu": _Start("us-central1", ("v2-8", "v2-32", "v2-128")),
    "gke": _Start("us-central1", ("v5litepod-4", "v5litepod-16", "v5litepod-64")),
    "ai-platform": _Start("us-central1", ("v2-8",)),
}
_CLIMB: Final = _Start("us-central1", ("v2-8", "v2-32"))
_CLIMB_ON_GKE: Final = _Start("us-central1", ("v5litepod-4", "v5litepod-16"))
_ONE_HOST: Final = _Start("us-central1", ("v5litepod-4", "v5litepod-8"))
"""TensorFlow on several hosts needs a server of its own on each of them: https://cloud.google.com/tpu/docs/runtimes."""

TRAINERS: Final[Mapping[str, Mapping[str, _Start]]] = {
    "jax": {"vertex-ai": _CLIMB, "cloud-tpu": _CLIMB, "gke": _CLIMB_ON_GKE},
    "tensorflow": {
        "vertex-ai": _ONE_HOST,
        "cloud-tpu": _ONE_HOST,
        "gke": _ONE_HOST,
        "ai-platform": _STARTS["ai-platform"],
    },
}
"""The trainers to begin with, by framework: the targets that each runs on, and its ladder there.

AI Platform Training has its TPUs behind a network, where JAX cannot reach them. The ladders are short, because the
plain optimizer of the trainers is not made for a batch that grew 8-fold.
"""


def files(*, name: str, target: str, trainer: str | None = None) -> Iterator[tuple[Path, str]]:
    """What a new project holds, by path.

    Args:
        name: The project's name.
        target: A target; one of those in TRAINERS where a trainer is asked for.
        trainer: One of TRAINERS; None for a project that brings its own.
    """
    start = TRAINERS[trainer][target] if trainer else _STARTS[target]
    values = {"name": name, "target": target, "trainer": trainer, "version": __version__, **start._asdict()}
    yield from _rendered("init", Path(), values)
    for part in ("common", trainer) if trainer else ():
        yield from _rendered(f"trainer/{part}", Path("trainer"), values)
    for schema in ("tpucfg", "stack"):
        below = Path("schema") / f"{schema}.schema.json"
        yield below, (data_folder("schema") / below.name).read_text(encoding="utf-8")
    for path in sorted(data_folder("stacks").glob("*.py")):
        yield Path("stacks") / path.name, path.read_text(encoding="utf-8")
    # Its own copy of what the workflow is made of, so that it reviews with what it was given.
    actions = data_folder(".github/actions")
    for path in sorted(actions.rglob("*.*")):
        yield Path(".github", "actions") / path.relative_to(actions), path.read_text(encoding="utf-8")


def _rendered(source: str, place: Path, values: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """The files below a folder of templates/: those with the ending .j2 are templates, all others stay as they are."""
    root = data_folder("templates") / source
    for path in sorted(root.rglob("*")):
        below = path.relative_to(root)
        if path.suffix == ".j2":
            template = config_environment().get_template(f"{source}/{below.as_posix()}")
            yield place / below.with_suffix(""), template.render(values)
        elif path.is_file() and path.suffix != ".pyc":
            yield place / below, path.read_text(encoding="utf-8")
