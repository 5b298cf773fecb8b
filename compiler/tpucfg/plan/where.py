"""Rules about an environment: does its region have the rungs, do its zones, does its bucket's name do."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.catalog import Catalog, Slice, Zone
from tpucfg.findings import Finding, Place
from tpucfg.plan.names import bucket_mistake
from tpucfg.plan.whole import bucket_of
from tpucfg.schemas import dotted, listed
from tpucfg.spec.model import Environment, Project

OWN_LIST: Final = ("cloud-tpu",)
"""Targets for which Google publishes zones by size; for the others Cloud TPU's list decides, and a finding says so."""
OWN_REGIONS: Final = ("ai-platform",)
"""Targets that publish their regions and choose the zone: their own module says where they are."""
ZONES_URL: Final = "https://cloud.google.com/tpu/docs/regions-zones"
_NOT_OFFICIAL: Final = {
    "older-docs": "{size} in {where} is in an older list of Google's and no longer in the current one",
    "single-tenant": "{size} in {where} is in Google's list for customers with capacity of their own only",
    "third-party": "{size} in {where} is listed by {source}, not by Google",
}
"""By the kind of list that names the zone."""


def environment_findings(
    project: Project, catalog: Catalog, environment: Environment, sizes: Sequence[str], target: str
) -> Iterator[Finding]:
    """Everything about where an environment is, for these of its sizes; `target` is the service that its jobs go to."""
    slices = [slice_ for size in environment.sizes if (slice_ := catalog.find(size))]
    yield from _bucket(project, environment)
    if target in OWN_REGIONS:
        return
    for slice_ in slices:
        if slice_.size not in sizes or target not in slice_.targets:
            continue
        if slice_.size in environment.zones:
            yield from _zone(project, catalog, environment, slice_)
        else:
            yield from _region(project, catalog, environment, slices, slice_, target)


def zone_of(environment: Environment, slice_: Slice) -> str | None:
    """The zone for a slice: the spec's, else the first of the region in Google's list, else in another's."""
    listed_here = slice_.zones_in(environment.region)
    return environment.zones.get(slice_.size) or (listed_here[0].name if listed_here else None)


def _bucket(project: Project, environment: Environment) -> Iterator[Finding]:
    bucket = bucket_of(project, environment)
    if mistake := bucket_mistake(bucket):
        path = (*environment.path, "bucket")
        message = f"the bucket of {environment.name} would be called {bucket}: {mistake}"
        yield Finding.of(
            "TPU028", message, project.document.value(path), help=f"set {dotted(path)} to a name that does"
        )


def _region(
    project: Project, catalog: Catalog, environment: Environment, ladder: list[Slice], slice_: Slice, target: str
) -> Iterator[Finding]:
    offers = slice_.zones_in(environment.region)
    if any(zone.official for zone in offers) or not slice_.zones:
        return
    place = project.document.value((*environment.sizes_path, environment.sizes.index(slice_.size)))
    if offers:
        yield _unofficial("TPU021", catalog, slice_, offers[0], environment.region, place)
        return
    everywhere = _with_every_rung(ladder)
    yield Finding.of(
        "TPU021",
        f"{slice_.size} is not offered in {environment.region}",
        place,
        help=_move(environment, slice_, everywhere),
        details=_lists(slice_, everywhere, [rung.size for rung in ladder], target),
        related=((project.document.value((*environment.path, "region")), f"the region of {environment.name}"),),
    )


def _lists(slice_: Slice, everywhere: list[str], ladder: list[str], target: str) -> Iterator[str]:
    rungs = ", ".join(ladder)
    offered = listed(slice_.regions(official=True))
    if everywhere:
        verb = "offers" if len(everywhere) == 1 else "offer"
        yield f"{listed(everywhere)} {verb} every rung of this ladder ({rungs})"
    else:
        where = f"; {slice_.size} is in {offered}" if offered else ""
        yield f"no region offers every rung of this ladder ({rungs}){where}"
    if target not in OWN_LIST:
        yield f"by Cloud TPU's list, as {target} publishes none: {ZONES_URL}"


def _move(environment: Environment, slice_: Slice, everywhere: list[str]) -> str:
    leave = f"leave {slice_.size} out"
    if everywhere:
        return f"set environments.{environment.name}.region to {everywhere[0]}, or {leave}"
    elsewhere = slice_.regions(official=True)
    return f"{leave} here and give it to an environment in {elsewhere[0]}" if elsewhere else leave


def _with_every_rung(ladder: list[Slice]) -> list[str]:
    regions = [slice_.regions(official=True) for slice_ in ladder]
    return [region for region in regions[0] if all(region in others for others in regions)]


def _unofficial(id_: str, catalog: Catalog, slice_: Slice, zone: Zone, where: str, place: Place) -> Finding:
    source = catalog.sources[zone.source]
    message = _NOT_OFFICIAL[zone.kind].format(size=slice_.size, where=where, source=source.what)
    official = listed(slice_.regions(official=True))
    hint = "ask for quota there first" + (f", or move to a region of Google's list: {official}" if official else "")
    details = (f"that list: {source.url}", f"Google's current list: {ZONES_URL}")
    return Finding.of(id_, message, place, level="warning", help=hint, details=details)


def _zone(project: Project, catalog: Catalog, environment: Environment, slice_: Slice) -> Iterator[Finding]:
    name, path = environment.zones[slice_.size], (*environment.path, "zones", slice_.size)
    place = project.document.value(path)
    region = name.rpartition("-")[0]
    known = {zone.name: zone for zone in slice_.zones}
    if region != environment.region:
        yield Finding.of(
            "TPU022",
            f"the zone {name} is in {region}, and {environment.name} is in {environment.region} with its bucket",
            place,
            help=f"choose a zone of {environment.region}, or move the environment",
            related=((project.document.value((*environment.path, "region")), f"the region of {environment.name}"),),
        )
    elif slice_.zones and name not in known:
        message = f"{slice_.size} is not offered in the zone {name}"
        hint = f"zones with it: {listed(list(known))}"
        yield Finding.of("TPU022", message, place, help=hint, details=(f"Cloud TPU's list: {ZONES_URL}",))
    elif known and not known[name].official:
        yield _unofficial("TPU022", catalog, slice_, known[name], name, place)
