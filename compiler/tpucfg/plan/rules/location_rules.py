"""Rules about locations: region, zones and bucket of an environment, and the data that its jobs read."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from tpucfg.catalog import TARGET_FACTS, Catalog, Slice, Zone
from tpucfg.findings import Finding, Location
from tpucfg.plan.naming import bucket_name_problem, bucket_of
from tpucfg.plan.selection import SelectedSizes
from tpucfg.spec import Cluster, Environment, Project
from tpucfg.text_format import dotted, format_value, listed, nearest
from tpucfg.yamldoc import KeyPath

BUCKETS_URL: Final = "https://cloud.google.com/storage/docs/buckets#naming"
ZONES_URL: Final = "https://cloud.google.com/tpu/docs/regions-zones"
DATA_URL: Final = "https://cloud.google.com/tpu/docs/storage-buckets"
"""Data should be in a regional bucket in the TPU's region."""
_NOT_OFFICIAL: Final = {
    "older-docs": "{sizes} not in Google's current list for {location_name}, only in an older one",
    "single-tenant": "{sizes} offered in {location_name} only to customers with capacity of their own",
    "third-party": "{sizes} not in Google's list for {location_name}, only in {source}",
}
"""Messages by the kind of list that names the zone."""


def location_findings(
    project: Project, catalog: Catalog, environment: Environment, sizes: Sequence[str]
) -> Iterator[Finding]:
    """Yield the findings about the location of an environment, for the given sizes of its ladder."""
    yield from _bucket(project, environment)
    yield from _distant_cluster(project, environment)
    yield from _distant_buckets(project, environment)
    yield from _cluster(project, environment)
    if TARGET_FACTS[environment.target].zones == "chosen by the service":
        return
    ladder = [slice_ for size in environment.sizes if (slice_ := catalog.find(size))]
    selected = [slice_ for slice_ in ladder if slice_.size in sizes and environment.target in slice_.targets]
    for slice_ in selected:
        if slice_.size in environment.zones:
            yield from _zone(project, catalog, environment, slice_)
    # A size whose zone the spec sets was checked above, so that one mistake is reported only once.
    by_region = [slice_ for slice_ in selected if slice_.zones and slice_.size not in environment.zones]
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
    details = (f"the rules: {BUCKETS_URL}",)
    yield Finding.of("TPU028", message, project.document.value_location(path), help=hint, details=details)


def _distant_cluster(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield an error for a cluster in another region: its TPUs would read the bucket from there."""
    cluster, path, location = environment.cluster, environment.path, project.document.value_location
    if cluster is None or "cluster" not in TARGET_FACTS[environment.target].environment_keys:
        return
    region = re.sub(r"(?<=[0-9])-[a-z]$", "", cluster.location)
    if region == environment.region:
        return
    key: KeyPath = (*path, "cluster" if project.document.node((*path, "cluster")) else "kube_context")
    yield Finding.of(
        "TPU035",
        f"the cluster {cluster.name} is in {cluster.location}, and {environment.name} with its bucket in "
        f"{environment.region}: every read and checkpoint would cross regions",
        location(key),
        help=f"set {dotted((*path, 'region'))} to {region}, or {dotted(key)} to a cluster in {environment.region}",
        related=((location((*path, "region")), f"the region of {environment.name}"),),
    )


def _distant_buckets(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield a warning for each bucket of `reads` in another region."""
    for bucket, region in environment.reads.items():
        path: KeyPath = (*environment.path, "reads", bucket)
        if region.lower() != environment.region:
            yield Finding.of(
                "TPU036",
                f"{bucket} is in {region}, and the TPUs of {environment.name} are in {environment.region}: reading it "
                "from there is slower, and billed by the byte",
                project.document.value_location(path),
                help=f"copy it to a bucket in {environment.region}, or allow TPU036",
                details=(f"data should be in a bucket in the TPU's region: {DATA_URL}",),
            )


def _cluster(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield a finding for an environment whose cluster the spec does not name, or names in two ways."""
    path, context = (*environment.path, "cluster"), environment.kube_context
    if "cluster" not in TARGET_FACTS[environment.target].environment_keys:
        return
    if environment.cluster is None:
        name = f"projects/{environment.project}/locations/{environment.region}/clusters/NAME"
        message = f"{dotted(environment.path)} names no cluster, so tpucfg submit starts no job of it"
        hint = f"set {dotted(path)} to {name}, or allow TPU125 if another tool applies the configs"
        if context:
            message = f"the context {context} names no cluster: it is taken to be in {environment.region} and in "
            message += f"{environment.project}, whose identity pool the stack grants"
            hint = f"set {dotted(path)} to {name}, or allow TPU125 if it is there"
        location = project.document.key_location((*environment.path, "kube_context" if context else "cluster"))
        yield Finding.of("TPU125", message, location, help=hint)
    elif (named := Cluster.of_context(context)) and named != environment.cluster:
        context_path = (*environment.path, "kube_context")
        yield Finding.of(
            "TPU054",
            f"the context is of {named.path}, and {dotted(path)} is another one: jobs would start where the stack "
            "grants nothing",
            project.document.value_location(context_path),
            help=f"delete {dotted(context_path)}, which makes it {environment.cluster.context}",
            related=((project.document.value_location(path), "the cluster"),),
        )


def _missing_in_region(
    project: Project, catalog: Catalog, environment: Environment, ladder: list[Slice], slices: list[Slice]
) -> Iterator[Finding]:
    """Yield an error for slices without a zone in the environment's region.

    The error is at the region if it offers none of them, else at the first missing rung.
    """
    region, at_region = environment.region, project.document.value_location((*environment.path, "region"))
    missing = [slice_ for slice_ in slices if not slice_.zones_in(region)]
    if not missing:
        return
    complete_regions, names = _regions_with_all(ladder), [slice_.size for slice_ in missing]
    hint = _region_hint(environment, ladder, missing, complete_regions)
    zone_list = _zone_list(environment.target)
    if missing == slices and region not in (known := _regions_with_tpus(catalog)):
        near = nearest(region, known)
        details = (f"regions with TPUs: {listed(sorted(known), 30)}", zone_list)
        message, hint = f"no TPU is offered in {region}", f"did you mean {near}?" if near else hint
        yield Finding.of("TPU021", message, at_region, help=hint, details=details)
        return
    at_rung = project.document.value_location((*environment.sizes_path, environment.sizes.index(names[0])))
    yield Finding.of(
        "TPU021",
        f"{listed(names, last=' and ')} {'is' if len(names) == 1 else 'are'} not offered in {region}",
        at_region if missing == slices else at_rung,
        help=hint,
        details=(_offering_regions(missing, complete_regions, ladder), zone_list),
        related=() if missing == slices else ((at_region, f"the region of {environment.name}"),),
    )


def _regions_with_tpus(catalog: Catalog) -> tuple[str, ...]:
    return tuple(dict.fromkeys(zone.region for slice_ in catalog.all() for zone in slice_.zones))


def _offering_regions(missing: list[Slice], complete_regions: list[str], ladder: list[Slice]) -> str:
    rungs = ", ".join(slice_.size for slice_ in ladder)
    if complete_regions:
        verb = "offers" if len(complete_regions) == 1 else "offer"
        return f"{listed(complete_regions)} {verb} every rung of this ladder ({rungs})"
    regions = listed(missing[0].regions(official=True))
    offer = f"; {missing[0].size} is offered in {regions}" if regions else ""
    return f"no region offers every rung of this ladder ({rungs}){offer}"


def _zone_list(target: str) -> str:
    has_own = TARGET_FACTS[target].zones == "own list"
    publisher = "Cloud TPU's list" if has_own else f"by Cloud TPU's list, as {target} publishes none"
    return f"{publisher}: {ZONES_URL}"


def _region_hint(
    environment: Environment, ladder: list[Slice], missing: list[Slice], complete_regions: list[str]
) -> str:
    leave_out = f"leave {listed([slice_.size for slice_ in missing], last=' and ')} out"
    if complete_regions:
        move = f"set environments.{environment.name}.region to {complete_regions[0]}"
        return move if missing == ladder else f"{move}, or {leave_out}"
    regions = missing[0].regions(official=True)
    return f"{leave_out} here, and add an environment in {regions[0]} for it" if regions else leave_out


def _regions_with_all(ladder: list[Slice]) -> list[str]:
    regions = [slice_.regions(official=True) for slice_ in ladder]
    return [region for region in regions[0] if all(region in offered_in for offered_in in regions)]


def _unofficial_in_region(
    project: Project, catalog: Catalog, environment: Environment, slices: list[Slice]
) -> Iterator[Finding]:
    """Yield a warning for each list that names the zones in the region, unless it is Google's current one."""
    offered = [(slice_, zones[0]) for slice_ in slices if (zones := slice_.zones_in(environment.region))]
    for _, group in groupby(offered, key=lambda pair: (pair[1].kind, pair[1].source)):
        of_list, zones = zip(*group, strict=True)
        if not zones[0].official:
            path = (*environment.sizes_path, environment.sizes.index(of_list[0].size))
            location = project.document.value_location(path)
            yield _unofficial("TPU021", catalog, of_list, zones[0], environment.region, location)


def _unofficial(
    id_: str, catalog: Catalog, slices: Sequence[Slice], zone: Zone, location_name: str, location: Location
) -> Finding:
    source, sizes = catalog.sources[zone.source], listed([slice_.size for slice_ in slices], last=" and ")
    sizes += " is" if len(slices) == 1 else " are"
    message = _NOT_OFFICIAL[zone.kind].format(sizes=sizes, location_name=location_name, source=source.title)
    official = listed(slices[0].regions(official=True))
    hint = "request quota there first" + (f", or move to a region of Google's list: {official}" if official else "")
    details = (f"the other list: {source.url}", f"Google's current list: {ZONES_URL}")
    return Finding.of(id_, message, location, level="warning", help=hint, details=details)


def _zone(project: Project, catalog: Catalog, environment: Environment, slice_: Slice) -> Iterator[Finding]:
    """Yield a finding for the zone that the spec sets for a size, unless Google's current list has it."""
    name, path = environment.zones[slice_.size], (*environment.path, "zones", slice_.size)
    location, hint = project.document.value_location(path), _zone_hint(environment, slice_, path)
    zones = {zone.name: zone for zone in slice_.zones}
    if name.rpartition("-")[0] != environment.region:
        region_location = project.document.value_location((*environment.path, "region"))
        message = f"the zone {name} is not in {environment.region}, the region of {environment.name} and its bucket"
        related = ((region_location, f"the region of {environment.name}"),)
        yield Finding.of("TPU022", message, location, help=hint, related=related)
    elif zones and name not in zones:
        message = f"{slice_.size} is not offered in the zone {name}"
        yield Finding.of("TPU022", message, location, help=hint, details=(f"Cloud TPU's list: {ZONES_URL}",))
    elif zones and not zones[name].official:
        yield _unofficial("TPU022", catalog, [slice_], zones[name], name, location)


def _zone_hint(environment: Environment, slice_: Slice, path: KeyPath) -> str:
    """Return the edit of a zone: to one in the environment's region, preferably of Google's list, or its deletion."""
    in_region = slice_.zones_in(environment.region)
    if in_region:
        names = [zone.name for zone in in_region if zone.official] or [zone.name for zone in in_region]
        return f"set {dotted(path)} to {listed(names, last=' or ')}"
    if slice_.zones:
        return f"delete it; {slice_.size} is offered in {listed([zone.name for zone in slice_.zones])}"
    return f"delete it; no list has a zone for {slice_.size}"


def data_locality_findings(project: Project, selected: SelectedSizes) -> Iterator[Finding]:
    """Yield a finding for each literal gs:// path of the jobs' programs that is outside the environment's bucket."""
    # Reading a bucket of another region is charged by the byte, and slows down every step.
    owners = {f"gs://{bucket_of(project, each)}": each.name for each in project.environments.values()}
    buckets = {f"gs://{bucket_of(project, environment)}" for environment, _ in selected}
    read = set.intersection(*({*environment.reads} for environment, _ in selected)) if selected else set()
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
                problem = f"in the bucket of {owner}, which jobs of other environments would read too"
                hint = f"write {format_value(replacement, quoted=False)}, in the bucket of each environment"
            if project.training.preset and path[-1] in project.training.preset.args:
                hint = f"delete {dotted(path)}: training.flags adds it with the folder of the run"
            yield Finding.of(
                "TPU031",
                f"{dotted(path)} is {format_value(text, quoted=False)}, {problem}",
                project.document.value_location(path),
                help=hint,
                details=(f"data should be in a bucket in the TPU's region: {DATA_URL}",),
            )


def _storage_paths(project: Project, selected: SelectedSizes) -> Iterator[tuple[KeyPath, str]]:
    """Yield the literal gs:// texts of args and env, each by its path in the spec."""
    settings_of_jobs = (project.settings[environment.name, size] for environment, sizes in selected for size in sizes)
    for settings in {id(settings): settings for settings in settings_of_jobs}.values():
        texts = [
            (_value_path(project, arg.path, index), text)
            for arg in settings.trainer.args
            for index, text in enumerate(arg.values)
        ]
        texts += [(settings.source(("trainer", "env", key)), text) for key, text in settings.trainer.env]
        yield from ((path, text) for path, text in texts if text and text.startswith("gs://"))


def _value_path(project: Project, path: KeyPath, index: int) -> KeyPath:
    node = project.document.node(path)
    return (*path, index) if node is not None and isinstance(node.value, list) else path
