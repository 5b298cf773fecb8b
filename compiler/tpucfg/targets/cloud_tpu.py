"""Cloud TPU VMs: the config is a queued resource, whose hosts start the trainer's container when they boot.

Sources: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources (the message),
https://cloud.google.com/tpu/docs/queued-resources (tiers and states),
https://cloud.google.com/tpu/docs/run-in-container (docker on a TPU VM).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.plan.naming import zone_of
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.targets.common import (
    long_account_id,
    long_job_names,
    package_unsupported,
    service_problem,
    unsupported_machines,
    unsupported_sizes,
    without_empty,
)
from tpucfg.targets.interface import Command, Origin, RequestBody, Submission
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc.document import KeyPath

if TYPE_CHECKING:
    from jinja2 import Template

NAME: Final = "cloud-tpu"
CONTAINER: Final = "trainer"
"""What the container is called on every host."""

_API: Final = "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"
_GCLOUD: Final = "https://cloud.google.com/sdk/gcloud/reference/compute/tpus/queued-resources/create"
_DOCKER: Final = "https://cloud.google.com/tpu/docs/run-in-container"
_NAMES: Final = "https://cloud.google.com/compute/docs/naming-resources#resource-name-format"
_LONGEST_NAME: Final = 63
"""Characters of a VM's name, by _NAMES; the Cloud TPU API states none for a node."""
_METADATA: Final = "https://cloud.google.com/compute/docs/reference/rest/v1/instances"
_LARGEST_VALUE: Final = 256 * 1024
"""Bytes of one metadata value, by _METADATA: the script is one."""
_LARGEST_METADATA: Final = 512 * 1024
"""Bytes of all keys and values together."""
_LONGEST_DESCRIPTION: Final = 512
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_PARENT: Final = re.compile(r"projects/[^/]+/locations/[^/]+")
_GOOGLE_REGISTRY: Final = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev|([a-z0-9-]+\.)?gcr\.io")
"""Registries that take the token of a Google account:
https://cloud.google.com/artifact-registry/docs/docker/authentication#token."""

ORIGINS: Final[Mapping[str, Origin]] = {
    "tpu.nodeSpec.*.parent": Origin("rule", "the environment's project, and the zone of the size in its region", _API),
    "tpu.nodeSpec.*.nodeId": Origin("rule", "the job's name", _NAMES),
    "tpu.nodeSpec.*.node.acceleratorType": Origin("catalogue", "size", _API),
    "tpu.nodeSpec.*.node.runtimeVersion": Origin("spec", "targets.cloud-tpu.runtime_version"),
    "tpu.nodeSpec.*.node.networkConfig.network": Origin("spec", "targets.cloud-tpu.network"),
    "tpu.nodeSpec.*.node.networkConfig.enableExternalIps": Origin(
        "rule", "gcloud's default: without it the image comes only to a network with Private Google Access", _GCLOUD
    ),
    "tpu.nodeSpec.*.node.serviceAccount.email": Origin("spec", "targets.cloud-tpu.service_account"),
    "tpu.nodeSpec.*.node.serviceAccount.scope.*": Origin("rule", "all, as its roles say what the account may do", _API),
    "tpu.nodeSpec.*.node.labels.*": Origin("spec", "environments.<env>.labels"),
    "tpu.nodeSpec.*.node.metadata.startup-script": Origin(
        "rule", "a script that runs trainer.image on every host, with trainer.env and the program's flags", _DOCKER
    ),
    "spot": Origin("spec", "targets.cloud-tpu.spot"),
    "reservationName": Origin("spec", "targets.cloud-tpu.reservation"),
}


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Sizes, trainers, names and tiers that Cloud TPU does not take, and sizes without a zone."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(project, slices, NAME, chooses=False)
    yield from package_unsupported(project, NAME)
    yield from _unplaced(project, environment, slices)
    yield from _tiers(project)
    yield from long_job_names(project, environment, slices, lambda _: _LONGEST_NAME, _NAMES)
    if not project.targets.get(NAME, {}).get("service_account"):
        yield from long_account_id(project, environment, NAME)


def _unplaced(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """An error for each size of which no zone is known: a queued resource is asked for in a zone, not in a region."""
    for slice_ in slices:
        if NAME not in slice_.targets or zone_of(environment, slice_):
            continue
        if slice_.zones and "TPU021" not in project.allow:
            continue  # then TPU021 says that the region does not have it
        path = (*environment.path, "zones")
        message = f"{environment.name} has no zone for {slice_.size}: no list names one in {environment.region}"
        hint = f"add {dotted((*path, slice_.size))}, for example {environment.region}-a"
        yield Finding.of("TPU005", message, project.document.key_location(path), help=hint)


def _tiers(project: Project) -> Iterator[Finding]:
    """Spot capacity is what no reservation holds."""
    options, key = project.targets.get(NAME, {}), project.document.key_location
    if options.get("spot") and options.get("reservation"):
        yield Finding.of(
            "TPU054",
            f"targets.{NAME} asks for spot capacity and for the reservation {options['reservation']}",
            key(("targets", NAME, "spot")),
            help="delete one of the two",
            related=((key(("targets", NAME, "reservation")), "the reservation"),),
        )


def request_body(job: Job) -> RequestBody:
    """The QueuedResource: one node, which is the whole slice."""
    spec = {"parent": _parent(job), "nodeId": job.name, "node": _node(job)}
    made = without_empty(tpu={"nodeSpec": [spec]}, reservationName=_reservation(job))
    # `given` would leave it out: the tier is asked for by an empty message.
    return {**made, "spot": {}} if job.options.get("spot") else made


def _parent(job: Job) -> str:
    return f"projects/{job.environment.project}/locations/{job.zone}"


def _node(job: Job) -> dict[str, Any]:
    options = job.options
    return without_empty(
        acceleratorType=job.size,
        runtimeVersion=options.get("runtime_version") or job.slice.runtime_version,
        networkConfig=without_empty(network=options.get("network"), enableExternalIps=True),
        serviceAccount={"email": options.get("service_account") or job.account, "scope": [_SCOPE]},
        labels=dict(job.environment.labels),
        metadata={"startup-script": startup_script(job)},
    )


def _reservation(job: Job) -> str | None:
    name = job.options.get("reservation")
    return name if name is None or "/" in name else f"{_parent(job)}/reservations/{name}"


def startup_script(job: Job) -> str:
    """The bash script that every host runs, as root, at every boot."""
    host = (job.image or "").partition("/")[0]
    registry = host if _GOOGLE_REGISTRY.fullmatch(host) else None
    return str(_template().render(job=job, container=CONTAINER, registry=registry))


@cache
def _template() -> "Template":
    from tpucfg.templating import environment

    return environment().get_template(f"{NAME}/startup.sh.j2")


def rules(message: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """One tier, one way to say each thing, a size that exists, and metadata that fits."""
    yield from _exclusive((), message, ("spot", "guaranteed"))
    yield from _exclusive((), message, ("spot", "reservationName"))
    yield from _exclusive(("queueingPolicy",), message.get("queueingPolicy", {}))
    specs = message["tpu"]["nodeSpec"]
    if not specs:
        fix = "add an entry with parent, nodeId and node"
        yield service_problem(("tpu", "nodeSpec"), "it is empty, so nothing is asked for", fix)
    for index, spec in enumerate(specs):
        yield from _spec_rules(("tpu", "nodeSpec", index), spec, catalog)


def _spec_rules(path: KeyPath, spec: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    if not _PARENT.fullmatch(spec["parent"]):
        said = f"{format_value(spec['parent'], quoted=False)} is not of the form projects/PROJECT/locations/ZONE"
        yield service_problem((*path, "parent"), said, "write projects/, the project's id, /locations/ and the zone")
    if ("nodeId" in spec) == ("multisliceParams" in spec):
        yield service_problem(path, "it needs exactly one of nodeId and multisliceParams", _one_of(spec, "nodeId"))
    if len(name := spec.get("nodeId", "")) > _LONGEST_NAME:
        said = f"the node {name} has a name of {len(name)} characters, and {_LONGEST_NAME} are taken"
        fix = f"shorten it by {len(name) - _LONGEST_NAME}"
        yield Problem("TPU030", said, (*path, "nodeId"), fix, details=(f"the rule: {_NAMES}",))
    yield from _node_rules((*path, "node"), spec["node"], catalog)


def _node_rules(path: KeyPath, node: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    if ("acceleratorType" in node) == ("acceleratorConfig" in node):
        said = "it needs exactly one of acceleratorType and acceleratorConfig"
        yield service_problem(path, said, _one_of(node, "acceleratorType"))
    if (size := node.get("acceleratorType")) is not None:
        found = catalog.find(size)
        if found is None or NAME not in found.targets:
            near = None if found else catalog.nearest(size)
            said = found.refusals[NAME].why if found else "the catalogue has no such size"
            fix = f"did you mean {near}?" if near else f"the sizes are listed by: tpucfg sizes --target {NAME}"
            yield service_problem((*path, "acceleratorType"), f"{format_value(size, quoted=False)}: {said}", fix)
    yield from _shape_rules((*path, "acceleratorConfig"), node.get("acceleratorConfig", {}), catalog)
    yield from _exclusive(path, node, ("networkConfig", "networkConfigs"))
    if len(node.get("description", "")) > _LONGEST_DESCRIPTION:
        excess = len(node["description"]) - _LONGEST_DESCRIPTION
        said = f"it has more than {_LONGEST_DESCRIPTION} characters"
        yield service_problem((*path, "description"), said, f"shorten it by {excess}")
    yield from _metadata_rules((*path, "metadata"), node.get("metadata", {}))


def _one_of(given_: Mapping[str, Any], field: str) -> str:
    return "delete one of the two" if field in given_ else f"add {field}"


def _shape_rules(path: KeyPath, config: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    kind, topology = config.get("type"), config.get("topology")
    known = [slice_.topology for slice_ in catalog.all() if kind and slice_.accelerators.get(NAME) == kind]
    # Where the shape of a single size is not known, no shape can be told to be wrong.
    if known and None not in known and topology not in known:
        takes = listed([str(shape) for shape in known], 14)
        yield service_problem((*path, "topology"), f"{kind} has no topology {topology}", f"it takes: {takes}")


def _metadata_rules(path: KeyPath, metadata: Mapping[str, str]) -> Iterator[Problem]:
    sizes = {key: len(value.encode("utf-8", "surrogatepass")) for key, value in metadata.items()}
    for key, size in sizes.items():
        if size > _LARGEST_VALUE:
            said = f"it has {size:,} bytes, and a metadata value may have {_LARGEST_VALUE:,}"
            yield service_problem(
                (*path, key), said, "put what the flags say into a file in the bucket, and name the file"
            )
    if sum(sizes.values()) + sum(map(len, sizes)) >= _LARGEST_METADATA:
        said = f"all metadata together has to stay below {_LARGEST_METADATA:,} bytes"
        yield service_problem(path, said, "put what is long into a file in the bucket, and name the file")


def _exclusive(path: KeyPath, message: Mapping[str, Any], fields: Sequence[str] = ()) -> Iterator[Problem]:
    """An error where more than one of the fields, or more than one at all, is given."""
    given_ = [field for field in message if not fields or field in fields]
    if len(given_) > 1:
        yield service_problem((*path, given_[1]), f"it excludes {given_[0]}", f"delete {given_[0]} or {given_[1]}")


def submission(job: Job) -> Submission:
    """By the REST API, as no gcloud command takes the file: https://cloud.google.com/tpu/docs/queued-resources."""
    from shlex import join

    where = (f"--project={job.environment.project}", f"--zone={job.zone}")
    gcloud = ("gcloud", "compute", "tpus")
    address = f"https://tpu.googleapis.com/v2/{_parent(job)}/queuedResources?queuedResourceId={job.name}"
    post = ("curl", "--fail-with-body", "--silent", "--show-error", "--header", "Content-Type: application/json")
    reader = f"--command=sudo docker logs --follow {CONTAINER}"
    output = join((*gcloud, "tpu-vm", "ssh", job.name, *where, "--worker=all", reader))
    return Submission(
        start=Command((*post, "--data-binary", "@-", address), reads_config=True, config_format="json", token=True),
        watch=Command((*gcloud, "queued-resources", "describe", job.name, *where)),
        delete=Command((*gcloud, "queued-resources", "delete", job.name, *where, "--force")),
        notes=(
            "the slice costs until it is deleted, also when the program has ended",
            f"once the state is ACTIVE, the program's output: {output}",
        ),
    )
