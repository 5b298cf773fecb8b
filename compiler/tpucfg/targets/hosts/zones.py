"""The zone of a slice, which is requested in a zone and not in a region."""

from collections.abc import Iterator, Sequence

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.naming import zone_of
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import dotted


def missing_zones(
    project: Project, environment: Environment, slices: Sequence[Slice], target: str
) -> Iterator[Finding]:
    """Yield an error for each size of the target without a known zone."""
    for slice_ in slices:
        if target not in slice_.targets or zone_of(environment, slice_):
            continue
        if slice_.zones and "TPU021" not in project.allow:
            continue  # TPU021 reports that the region does not offer the size
        path = (*environment.path, "zones")
        message = f"{environment.name} has no zone for {slice_.size}: no list has one in {environment.region}"
        hint = f"add {dotted((*path, slice_.size))}, for example {environment.region}-a"
        yield Finding.of("TPU005", message, project.document.key_location(path), help=hint)
