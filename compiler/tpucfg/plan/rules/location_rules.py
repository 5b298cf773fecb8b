"""Rules about locations: region, zones and bucket of an environment, and the data that its jobs read."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from tpucfg.catalog import TARGET_FACTS, Catalog, Slice, Zone
from tpucfg.findings import Finding
from tpucfg.plan.naming import bucket_name_problem, bucket_of
from tpucfg.plan.selection import SelectedSizes
from tpucfg.spec import Cluster, Environment, Project
from tpucfg.spec.sections import compares
from tpucfg.text_format import dotted, format_value, listed, nearest
from tpucfg.yamldoc import KeyPath

BUCKETS_URL: Final = "https://cloud.google.com/storage/docs/buckets#naming"
ZONES_URL: Final = "https://cloud.google.com/tpu/docs/regions-zones"
_DATA: Final = "data should be in a bucket in the TPU's region: https://cloud.google.com/tpu/docs/storage-buckets"
_NOT_OFFICIAL: Final = {
    "older-docs": "{sizes} not in Google's current list for {place}, only in an older one",
    "single-tenant": "{sizes} offered in {place} only to customers with capacity of their own",
    "third-party": "{sizes} not in Google's list for {place}, only in {source}",
}
"""Messages by the kind of list that names the zone."""


@compares("name", "target")
def location_findings(
    project: Project, catalog: Catalog, environment: Environment, sizes: Sequence[str]
) -> Iterator[Finding]:
    """Yield the findings about the location of an environment, for the given sizes of its ladder."""
    yield from _bucket(project, environment)
    yield from _distant_buckets(project, environment)
    if "cluster" in TARGET_FACTS[environment.target].environment_keys:
        yield from _cluster(project, environment)
    if TARGET_FACTS[environment.target].zones == "chosen by the service":
        return
    ladder = [slice_ for size in environment.sizes if (slice_ := catalog.find(size))]
    selected = [
        slice_ for slice_ in ladder if slice_.size in sizes and environment.target in slice_.targets
    ]
    for slice_ in selected:
        if slice_.size in environment.zones:
            yield from _zone(project, catalog, environment, slice_)
    # A size whose zone the spec sets was checked above, so that one mistake is reported only once.
    by_region = [
        slice_ for slice_ in selected if slice_.zones and slice_.size not in environment.zones
    ]
    yield from _missing_in_region(project, catalog, environment, ladder, by_region)
    yield from _unofficial_in_region(project, catalog, environment, by_region)


def _bucket(project: Project, environment: Environment) -> Iterator[Finding]:
    bucket = bucket_of(project, environment)
    if not (problem := bucket_name_problem(bucket)):
        return
    path: KeyPath = (*environment.path, "bucket")
    if project.document.node((*path, "name")):
        path = (*path, "name")  # beside `create`, which stays
    without_project = f"{project.name}-{environment.name}-{environment.region}"
    candidates = [bucket.removeprefix("gs://").rstrip("/").lower(), without_project]
    suggestion = next((name for name in candidates if bucket_name_problem(name) is None), None)
    shown = format_value(bucket, quoted=False, max_length=80)
    message = f"{shown} cannot be the bucket of {environment.name}: {problem}"
    hint = f"set {dotted(path)} to another name" + (f", such as {suggestion}" if suggestion else "")
    yield project.document.finding(
        "TPU028", message, path, help=hint, details=(f"the rules: {BUCKETS_URL}",)
    )


def _distant_buckets(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield a warning for each bucket of `reads` in another region."""
    for bucket, region in environment.reads.items():
        if region.lower() != environment.region:
            message = (
                f"{bucket} is in {region}, and the TPUs of {environment.name} are in {environment.region}: reading it "
                "from there is slower, and billed by the byte"
            )
            hint = f"copy it to a bucket in {environment.region}, or allow TPU036"
            path = (*environment.path, "reads", bucket)
            yield project.document.finding("TPU036", message, path, help=hint, details=(_DATA,))


def _cluster(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield a finding for a cluster that the spec does not name, names in two ways, or has in another region.

    The TPUs of a cluster in another region would read the bucket from there.
    """
    path, context_path = (*environment.path, "cluster"), (*environment.path, "kube_context")
    cluster, context, region = environment.cluster, environment.kube_context, environment.region
    location = project.document.value_location
    if cluster is None:
        key, message = (
            path,
            f"{dotted(environment.path)} names no cluster, so tpucfg submit starts no job of it",
        )
        condition = "if another tool applies the configs"
        if context:
            key, condition = context_path, "if it is there"
            place = f"{region} and in {environment.project}, whose identity pool the stack grants"
            message = f"the context {context} names no cluster: it is taken to be in {place}"
        name = f"projects/{environment.project}/locations/{region}/clusters/NAME"
        hint = f"set {dotted(path)} to {name}, or allow TPU125 {condition}"
        yield project.document.finding("TPU125", message, key, at_key=True, help=hint)
        return
    key = path if project.document.node(path) else context_path
    own_region = re.sub(r"(?<=[0-9])-[a-z]$", "", cluster.location)
    if own_region != region:
        region_path = (*environment.path, "region")
        message = (
            f"the cluster {cluster.name} is in {cluster.location}, and {environment.name} with its bucket in {region}: "
            "every read and checkpoint would cross regions"
        )
        hint = (
            f"set {dotted(region_path)} to {own_region}, or {dotted(key)} to a cluster in {region}"
        )
        related = ((location(region_path), f"the region of {environment.name}"),)
        yield project.document.finding("TPU035", message, key, help=hint, related=related)
    if (named := Cluster.of_context(context)) and named != cluster:
        problem = f"the context is of {named.path}, and {dotted(path)} is another one"
        message = f"{problem}: jobs would start where the stack grants nothing"
        hint = f"delete {dotted(context_path)}, which makes it {cluster.context}"
        related = ((location(path), "the cluster"),)
        yield project.document.finding("TPU054", message, context_path, help=hint, related=related)


def _missing_in_region(
    project: Project,
    catalog: Catalog,
    environment: Environment,
    ladder: list[Slice],
    slices: list[Slice],
) -> Iterator[Finding]:
    """Yield an error for slices without a zone in the environment's region.

    The error is at the region if it offers none of them, else at the first missing rung.
    """
    region, region_path = environment.region, (*environment.path, "region")
    missing = [slice_ for slice_ in slices if not slice_.zones_in(region)]
    if not missing:
        return
    names = [slice_.size for slice_ in missing]
    message = f"{listed(names, last=' and ')} {'is' if len(names) == 1 else 'are'} not offered in {region}"
    offer, hint = _other_regions(environment, ladder, missing)
    options: dict[str, Any] = {"help": hint, "details": (offer, _zone_list(environment.target))}
    if missing == slices:
        regions = {zone.region for slice_ in catalog.all() for zone in slice_.zones}
        near = None if region in regions else nearest(region, sorted(regions))
        options |= {"help": f"did you mean {near}?"} if near else {}
        yield project.document.finding("TPU021", message, region_path, **options)
        return
    path = (*environment.sizes_path, environment.sizes.index(names[0]))
    related = ((project.document.value_location(region_path), f"the region of {environment.name}"),)
    yield project.document.finding("TPU021", message, path, related=related, **options)


def _zone_list(target: str) -> str:
    has_own = TARGET_FACTS[target].zones == "own list"
    publisher = (
        "Cloud TPU's list" if has_own else f"by Cloud TPU's list, as {target} publishes none"
    )
    return f"{publisher}: {ZONES_URL}"


def _other_regions(
    environment: Environment, ladder: list[Slice], missing: list[Slice]
) -> tuple[str, str]:
    """Return the regions that offer the ladder or else its first missing rung, and the edit that chooses one."""
    rungs = f"every rung of this ladder ({', '.join(slice_.size for slice_ in ladder)})"
    leave_out = f"leave {listed([slice_.size for slice_ in missing], last=' and ')} out"
    first, *others = (slice_.regions(official=True) for slice_ in ladder)
    if complete := [
        region for region in first if all(region in offered_in for offered_in in others)
    ]:
        move = f"set {dotted((*environment.path, 'region'))} to {complete[0]}"
        verb = "offers" if len(complete) == 1 else "offer"
        return (
            f"{listed(complete)} {verb} {rungs}",
            move if missing == ladder else f"{move}, or {leave_out}",
        )
    if regions := missing[0].regions(official=True):
        offer = f"no region offers {rungs}; {missing[0].size} is offered in {listed(regions)}"
        return offer, f"{leave_out} here, and add an environment in {regions[0]} for it"
    return f"no region offers {rungs}", leave_out


def _unofficial_in_region(
    project: Project, catalog: Catalog, environment: Environment, slices: list[Slice]
) -> Iterator[Finding]:
    """Yield a warning for each list that names the zones in the region, unless it is Google's current one."""
    offered = [
        (slice_, zones[0]) for slice_ in slices if (zones := slice_.zones_in(environment.region))
    ]
    for _, group in groupby(offered, key=lambda pair: (pair[1].kind, pair[1].source)):
        of_list, zones = zip(*group, strict=True)
        if not zones[0].official:
            path = (*environment.sizes_path, environment.sizes.index(of_list[0].size))
            yield _unofficial(
                "TPU021", project, catalog, of_list, zones[0], environment.region, path
            )


def _unofficial(
    id_: str,
    project: Project,
    catalog: Catalog,
    slices: Sequence[Slice],
    zone: Zone,
    place: str,
    path: KeyPath,
) -> Finding:
    source, sizes = (
        catalog.sources[zone.source],
        listed([slice_.size for slice_ in slices], last=" and "),
    )
    sizes += " is" if len(slices) == 1 else " are"
    message = _NOT_OFFICIAL[zone.kind].format(sizes=sizes, place=place, source=source.title)
    official = listed(slices[0].regions(official=True))
    hint = "request quota there first" + (
        f", or move to a region of Google's list: {official}" if official else ""
    )
    details = (f"the other list: {source.url}", f"Google's current list: {ZONES_URL}")
    return project.document.finding(id_, message, path, level="warning", help=hint, details=details)


def _zone(
    project: Project, catalog: Catalog, environment: Environment, slice_: Slice
) -> Iterator[Finding]:
    """Yield a finding for the zone that the spec sets for a size, unless Google's current list has it."""
    name, path = environment.zones[slice_.size], (*environment.path, "zones", slice_.size)
    hint = _zone_hint(environment, slice_, path)
    zones = {zone.name: zone for zone in slice_.zones}
    if name.rpartition("-")[0] != environment.region:
        region_location = project.document.value_location((*environment.path, "region"))
        message = f"the zone {name} is not in {environment.region}, the region of {environment.name} and its bucket"
        related = ((region_location, f"the region of {environment.name}"),)
        yield project.document.finding("TPU022", message, path, help=hint, related=related)
    elif zones and name not in zones:
        message, details = (
            f"{slice_.size} is not offered in the zone {name}",
            (f"Cloud TPU's list: {ZONES_URL}",),
        )
        yield project.document.finding("TPU022", message, path, help=hint, details=details)
    elif zones and not zones[name].official:
        yield _unofficial("TPU022", project, catalog, [slice_], zones[name], name, path)


def _zone_hint(environment: Environment, slice_: Slice, path: KeyPath) -> str:
    """Return the edit of a zone: to one in the environment's region, preferably of Google's list, or its deletion."""
    in_region = slice_.zones_in(environment.region)
    if in_region:
        names = [zone.name for zone in in_region if zone.official] or [
            zone.name for zone in in_region
        ]
        return f"set {dotted(path)} to {listed(names, last=' or ')}"
    if slice_.zones:
        return (
            f"delete it; {slice_.size} is offered in {listed([zone.name for zone in slice_.zones])}"
        )
    return f"delete it; no list has a zone for {slice_.size}"


@compares("name", "trainer", "overrides")
def data_locality_findings(project: Project, selected: SelectedSizes) -> Iterator[Finding]:
    """Yield a finding for each literal gs:// path of the jobs' programs that is outside the environment's bucket."""
    # Reading a bucket of another region is charged by the byte, and slows down every step.
    owners = {
        f"gs://{bucket_of(project, each)}": each.name for each in project.environments.values()
    }
    buckets = {f"gs://{bucket_of(project, environment)}" for environment, _ in selected}
    read = (
        set.intersection(*({*environment.reads} for environment, _ in selected))
        if selected
        else set()
    )
    for path, text in dict(_storage_paths(project, selected)).items():
        bucket_url = "/".join(text.split("/")[:3])
        if "${" not in bucket_url and buckets != {bucket_url} and bucket_url not in read:
            replacement = "${bucket}" + text[len(bucket_url) :]
            hint = (
                f"copy it and write {format_value(replacement, quoted=False)}; or list {bucket_url} with its region "
                "under reads of the environment, whose stack then grants it; or allow TPU031, for public data"
            )
            problem = "outside ${bucket}: its region is unknown"
            if owner := owners.get(bucket_url):
                problem = (
                    f"in the bucket of {owner}, which jobs of other environments would read too"
                )
                hint = f"write {format_value(replacement, quoted=False)}, in the bucket of each environment"
            if project.training.preset and path[-1] in project.training.preset.args:
                hint = f"delete {dotted(path)}: training.flags adds it with the folder of the run"
            message = f"{dotted(path)} is {format_value(text, quoted=False)}, {problem}"
            yield project.document.finding("TPU031", message, path, help=hint, details=(_DATA,))


def _storage_paths(project: Project, selected: SelectedSizes) -> Iterator[tuple[KeyPath, str]]:
    """Yield the literal gs:// texts of args and env, each by its path in the spec."""
    settings_of_jobs = (
        project.settings[environment.name, size]
        for environment, sizes in selected
        for size in sizes
    )
    distinct = {settings.layer_paths: settings for settings in settings_of_jobs}
    for settings in distinct.values():
        for key in ("args", "env"):
            section = settings.layers.find("trainer", key)
            texts = section.texts() if section else ()
            yield from ((path, text) for path, text in texts if text.startswith("gs://"))
