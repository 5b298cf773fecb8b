"""Rules about an environment: does its region have the rungs, do its zones, does its bucket's name do."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from tpucfg.catalog import Catalog, Slice, Zone
from tpucfg.findings import Finding, Location
from tpucfg.plan.naming import bucket_name_problem, bucket_of
from tpucfg.plan.rung import program_args
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import dotted, format_value, listed, nearest
from tpucfg.yamldoc.document import KeyPath

OWN_LIST: Final = ("cloud-tpu",)
"""Targets for which Google publishes zones by size; for the others Cloud TPU's list decides, and a finding says so."""
OWN_REGIONS: Final = ("ai-platform",)
"""Targets that publish their regions and choose the zone: their own module says where they are."""
BUCKETS_URL: Final = "https://cloud.google.com/storage/docs/buckets#naming"
_OTHERS: Final = "by Cloud TPU's list, as {target} publishes none"
ZONES_URL: Final = "https://cloud.google.com/tpu/docs/regions-zones"
_NOT_OFFICIAL: Final = {
    "older-docs": "Google's current list does not have {size} in {where}; an older one does",
    "single-tenant": "Google's list has {size} in {where} only for customers with capacity of their own",
    "third-party": "Google's list does not have {size} in {where}; {source} does",
}
"""By the kind of list that names the zone."""


def location_findings(
    project: Project, catalog: Catalog, environment: Environment, sizes: Sequence[str], target: str
) -> Iterator[Finding]:
    """Everything about where an environment is, for these of its sizes; `target` is the service that its jobs go to."""
    yield from _bucket(project, environment)
    if target in OWN_REGIONS:
        return
    ladder = [slice_ for size in environment.sizes if (slice_ := catalog.find(size))]
    asked = [slice_ for slice_ in ladder if slice_.size in sizes and target in slice_.targets]
    for slice_ in asked:
        if slice_.size in environment.zones:
            yield from _zone(project, catalog, environment, slice_)
    free = [
        (slice_, slice_.zones_in(environment.region))
        for slice_ in asked
        if slice_.zones and slice_.size not in environment.zones
    ]
    lacking = [slice_ for slice_, zones in free if not zones]
    if lacking:
        yield _lacks(project, catalog, environment, ladder, lacking, len(lacking) == len(free), target)
    doubtful = [(slice_, zones[0]) for slice_, zones in free if zones]
    for _, group in groupby(doubtful, key=lambda it: (it[1].kind, it[1].source)):
        listed_there = list(group)
        if not listed_there[0][1].official:
            location = project.document.value_location(
                (*environment.sizes_path, environment.sizes.index(listed_there[0][0].size))
            )
            slices = [slice_ for slice_, _ in listed_there]
            yield _unofficial("TPU021", catalog, slices, listed_there[0][1], environment.region, location)


def _bucket(project: Project, environment: Environment) -> Iterator[Finding]:
    bucket = bucket_of(project, environment)
    if not (mistake := bucket_name_problem(bucket)):
        return
    path, verb = (*environment.path, "bucket"), "is" if environment.bucket else "would be"
    shorter = f"{project.name}-{environment.name}-{environment.region}"
    tried = [bucket.removeprefix("gs://").rstrip("/").lower(), shorter]
    fit = next((name for name in tried if bucket_name_problem(name) is None), None)
    message = (
        f"the bucket of {environment.name} {verb} called {format_value(bucket, quoted=False, longest=80)}: {mistake}"
    )
    hint = f"set {dotted(path)} to another name" + (f", such as {fit}" if fit else "")
    details = (f"the rules: {BUCKETS_URL}",)
    yield Finding.of("TPU028", message, project.document.value_location(path), help=hint, details=details)


def _lacks(
    project: Project,
    catalog: Catalog,
    environment: Environment,
    ladder: list[Slice],
    lacking: list[Slice],
    all_of_them: bool,
    target: str,
) -> Finding:
    """One finding for an environment: at its region where that has no rung at all, else at the first that it lacks."""
    region, at_region = environment.region, project.document.value_location((*environment.path, "region"))
    everywhere, names = _with_every_rung(ladder), [slice_.size for slice_ in lacking]
    if all_of_them:
        known = list(dict.fromkeys(zone.region for slice_ in catalog.all() for zone in slice_.zones))
        if region not in known:
            near = nearest(region, known)
            hint = f"did you mean {near}?" if near else _move(environment, ladder, lacking, everywhere)
            details = (f"regions with TPUs: {listed(sorted(known), 30)}", *_whose(target))
            return Finding.of("TPU021", f"no TPU is offered in {region}", at_region, help=hint, details=details)
    verb = "is" if len(names) == 1 else "are"
    index = environment.sizes.index(names[0])
    return Finding.of(
        "TPU021",
        f"{listed(names, last=' and ')} {verb} not offered in {region}",
        at_region if all_of_them else project.document.value_location((*environment.sizes_path, index)),
        help=_move(environment, ladder, lacking, everywhere),
        details=(_regions(lacking, everywhere, ladder), *_whose(target)),
        related=() if all_of_them else ((at_region, f"the region of {environment.name}"),),
    )


def _regions(lacking: list[Slice], everywhere: list[str], ladder: list[Slice]) -> str:
    rungs = ", ".join(slice_.size for slice_ in ladder)
    if everywhere:
        verb = "offers" if len(everywhere) == 1 else "offer"
        return f"{listed(everywhere)} {verb} every rung of this ladder ({rungs})"
    offered = listed(lacking[0].regions(official=True))
    where = f"; {lacking[0].size} is in {offered}" if offered else ""
    return f"no region offers every rung of this ladder ({rungs}){where}"


def _whose(target: str) -> Iterator[str]:
    yield f"Cloud TPU's list: {ZONES_URL}" if target in OWN_LIST else f"{_OTHERS.format(target=target)}: {ZONES_URL}"


def _move(environment: Environment, ladder: list[Slice], lacking: list[Slice], everywhere: list[str]) -> str:
    leave = f"leave {listed([slice_.size for slice_ in lacking], last=' and ')} out"
    if everywhere:
        move = f"set environments.{environment.name}.region to {everywhere[0]}"
        return move if lacking == ladder else f"{move}, or {leave}"
    elsewhere = lacking[0].regions(official=True)
    return f"{leave} here, and give it to an environment in {elsewhere[0]}" if elsewhere else leave


def _with_every_rung(ladder: list[Slice]) -> list[str]:
    regions = [slice_.regions(official=True) for slice_ in ladder]
    return [region for region in regions[0] if all(region in others for others in regions)]


def _unofficial(id_: str, catalog: Catalog, slices: list[Slice], zone: Zone, where: str, location: Location) -> Finding:
    source, sizes = catalog.sources[zone.source], listed([slice_.size for slice_ in slices], last=" and ")
    message = _NOT_OFFICIAL[zone.kind].format(size=sizes, where=where, source=source.what)
    official = listed(slices[0].regions(official=True))
    hint = "ask for quota there first" + (f", or move to a region of Google's list: {official}" if official else "")
    details = (f"that list: {source.url}", f"Google's current list: {ZONES_URL}")
    return Finding.of(id_, message, location, level="warning", help=hint, details=details)


def _zone(project: Project, catalog: Catalog, environment: Environment, slice_: Slice) -> Iterator[Finding]:
    name, path = environment.zones[slice_.size], (*environment.path, "zones", slice_.size)
    location = project.document.value_location(path)
    known = {zone.name: zone for zone in slice_.zones}
    local = slice_.zones_in(environment.region)
    here = [zone.name for zone in local if zone.official] or [zone.name for zone in local]
    elsewhere = f"zones with it: {listed(list(known))}" if known else "no list knows its zones"
    hint = f"set {dotted(path)} to {listed(here, last=' or ')}" if here else f"delete it; {elsewhere}"
    if name.rpartition("-")[0] != environment.region:
        yield Finding.of(
            "TPU022",
            f"the zone {name} is not in {environment.region}, where {environment.name} and its bucket are",
            location,
            help=hint,
            related=(
                (project.document.value_location((*environment.path, "region")), f"the region of {environment.name}"),
            ),
        )
    elif known and name not in known:
        message = f"{slice_.size} is not offered in the zone {name}"
        yield Finding.of("TPU022", message, location, help=hint, details=(f"Cloud TPU's list: {ZONES_URL}",))
    elif known and not known[name].official:
        yield _unofficial("TPU022", catalog, [slice_], known[name], name, location)


# Where the data lies: a bucket of another region is paid for by the byte and waited for at every step.


BUCKET_URL: Final = "https://cloud.google.com/tpu/docs/storage-buckets"


def data_locality_findings(
    project: Project, chosen: Sequence[tuple[Environment, tuple[str, ...]]]
) -> Iterator[Finding]:
    """Every gs:// path of the chosen jobs' programs that is written out and lies outside an environment's own bucket.

    Data belongs in a regional bucket in the TPU's region: BUCKET_URL.
    """
    buckets = {f"gs://{bucket_of(project, environment)}" for environment, _ in chosen}
    sizes = tuple(dict.fromkeys(size for _, ladder in chosen for size in ladder))
    for path, text in _texts(project, sizes):
        own = "/".join(text.split("/")[:3])
        if "${" not in own and buckets != {own}:
            yield Finding.of(
                "TPU031",
                f"{dotted(path)} is {format_value(text, quoted=False)}, outside ${{bucket}}: its region is not known",
                project.document.value_location(path),
                help=f"copy it and write {format_value('${bucket}' + text[len(own) :], quoted=False)}, or allow TPU031",
                details=(f"data belongs in a bucket in the TPU's region: {BUCKET_URL}",),
            )


def _texts(project: Project, sizes: Sequence[str]) -> Iterator[tuple[KeyPath, str]]:
    args = {arg.path: arg for size in sizes for arg in program_args(project, size)}
    texts = [
        (_place(project, path, index), text) for path, arg in args.items() for index, text in enumerate(arg.values)
    ]
    texts += [(("trainer", "env", key), value) for key, value in project.trainer.env]
    return ((path, text) for path, text in texts if text and text.startswith("gs://"))


def _place(project: Project, path: KeyPath, index: int) -> KeyPath:
    node = project.document.node(path)
    return (*path, index) if node is not None and isinstance(node.value, list) else path
