"""Rules about keys that are TPU generations: those of `prices`, and of the flags of the TPU compiler."""

from collections.abc import Iterator
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding
from tpucfg.spec.layers import deletion_help
from tpucfg.spec.project import Project
from tpucfg.text_format import dotted, listed, nearest, quote_key
from tpucfg.yamldoc.document import KeyPath

_XLA_FLAGS: Final[KeyPath] = ("trainer", "xla_flags")


def unknown_generations_of_prices(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield an error for each price of an unknown generation: the rungs it is meant for would have no cost."""
    for name in project.prices:
        yield from _unknown_generation(project, catalog, ("prices", name), f"delete prices.{quote_key(name)}")


def unknown_generations_of_flags(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield an error for each unknown generation with flags of the TPU compiler, which no job would get."""
    for settings in project.distinct_settings():
        for name in settings.trainer.xla_flags:
            path = settings.source((*_XLA_FLAGS, name))
            yield from _unknown_generation(project, catalog, path, deletion_help(project.document, path))


def _unknown_generation(project: Project, catalog: Catalog, path: KeyPath, deletion: str) -> Iterator[Finding]:
    """Yield an error if the last key of a path in the spec is not a generation; `deletion` is the edit without it."""
    name = str(path[-1])
    if name in catalog.generation_names:
        return
    near = catalog.nearest_generation(name) or nearest(name, catalog.generation_names)
    yield Finding.of(
        "TPU004",
        f"{dotted(path[:-1])} has {quote_key(name)}, which is not a TPU generation",
        project.document.key_location(path),
        help=f"did you mean {near}?" if near else deletion,
        details=(f"the generations are: {listed(catalog.generation_names)}",),
    )


def unused_generations(project: Project, catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each generation with flags that no job has: a rung was removed, or the name is wrong."""
    used: dict[KeyPath, bool] = {}
    for (_, size), settings in project.settings.items():
        # Without flags, the catalog is not asked: an unknown size makes it load every generation.
        if not size or not settings.trainer.xla_flags or (slice_ := catalog.find(size)) is None:
            continue
        for generation in settings.trainer.xla_flags:
            path = settings.source((*_XLA_FLAGS, generation))
            used[path] = used.get(path, False) or slice_.generation == generation
    for path, is_used in used.items():
        if not is_used and path[-1] in catalog.generation_names:
            message = f"{dotted(path)} changes nothing: no rung with this setting is a {path[-1]}"
            location = project.document.key_location(path)
            yield Finding.of("TPU016", message, location, help=deletion_help(project.document, path))
