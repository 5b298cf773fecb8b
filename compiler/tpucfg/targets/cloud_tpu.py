"""Cloud TPU VMs: the config is a queued resource, whose hosts start the trainer's container when they boot.

Sources: https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources (the request body),
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
from tpucfg.targets.cloud_tpu_reserved import RESERVED
from tpucfg.targets.common import (
    distinct_settings,
    long_account_id,
    long_job_names,
    package_unsupported,
    service_problem,
    unsupported_machines,
    unsupported_sizes,
    uses_own_account,
    without_empty,
)
from tpucfg.targets.interface import Command, Origin, RequestBody, Submission
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc.document import KeyPath

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["NAME", "ORIGINS", "RESERVED", "request_body", "rules", "spec_findings", "submission"]

NAME: Final = "cloud-tpu"
CONTAINER: Final = "trainer"
"""The name of the container on every host."""

_API: Final = "https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources"
_GCLOUD: Final = "https://cloud.google.com/sdk/gcloud/reference/compute/tpus/queued-resources/create"
_DOCKER: Final = "https://cloud.google.com/tpu/docs/run-in-container"
_NAMES: Final = "https://cloud.google.com/compute/docs/naming-resources#resource-name-format"
_MAX_NAME_LENGTH: Final = 63
"""Characters of a VM's name (_NAMES); the Cloud TPU API states no limit for a node."""
_METADATA: Final = "https://cloud.google.com/compute/docs/reference/rest/v1/instances"
_MAX_METADATA_VALUE: Final = 256 * 1024
"""Bytes of one metadata value (_METADATA); the start-up script is one."""
_MAX_METADATA: Final = 512 * 1024
"""Bytes of all keys and values together."""
_MAX_DESCRIPTION_LENGTH: Final = 512
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_PARENT: Final = re.compile(r"projects/[^/]+/locations/[^/]+")
_GOOGLE_REGISTRY: Final = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev|([a-z0-9-]+\.)?gcr\.io")
"""Registries that accept the token of a Google account:
https://cloud.google.com/artifact-registry/docs/docker/authentication#token."""

ORIGINS: Final[Mapping[str, Origin]] = {
    "tpu.nodeSpec.*.parent": Origin(
        "rule",
        "the environment's project, and the zone of the size in its region",
        _API,
        "environments.<env>.project",
    ),
    "tpu.nodeSpec.*.nodeId": Origin("rule", "the job's name", _NAMES, "name"),
    "tpu.nodeSpec.*.node.acceleratorType": Origin("catalog", "size", _API),
    "tpu.nodeSpec.*.node.runtimeVersion": Origin("spec", "targets.cloud-tpu.runtime_version"),
    "tpu.nodeSpec.*.node.networkConfig.network": Origin("spec", "targets.cloud-tpu.network"),
    "tpu.nodeSpec.*.node.networkConfig.enableExternalIps": Origin(
        "rule", "gcloud's default: without it only a network with Private Google Access can pull the image", _GCLOUD
    ),
    "tpu.nodeSpec.*.node.serviceAccount.email": Origin("spec", "targets.cloud-tpu.service_account"),
    "tpu.nodeSpec.*.node.serviceAccount.scope.*": Origin("rule", "all: the account's roles limit its access", _API),
    "tpu.nodeSpec.*.node.labels.*": Origin("spec", "environments.<env>.labels"),
    "tpu.nodeSpec.*.node.metadata.startup-script": Origin(
        "rule",
        "a script that runs trainer.image on every host, with trainer.env and the program's flags",
        _DOCKER,
        "trainer",
    ),
    "spot": Origin("spec", "capacity"),
    "reservationName": Origin("spec", "capacity"),
}


def spec_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield findings about sizes, trainers, names and tiers that Cloud TPU refuses, and sizes without a zone."""
    yield from unsupported_sizes(project, environment, slices, NAME)
    yield from unsupported_machines(project, slices, NAME, chooses=False)
    yield from package_unsupported(project, distinct_settings(project, environment, slices), NAME)
    yield from _missing_zones(project, environment, slices)
    yield from long_job_names(project, environment, slices, lambda _: _MAX_NAME_LENGTH, _NAMES)
    if not uses_own_account(project, environment, slices, NAME):
        yield from long_account_id(project, environment, NAME)


def _missing_zones(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each size without a known zone: a queued resource is requested in a zone, not in a region."""
    for slice_ in slices:
        if NAME not in slice_.targets or zone_of(environment, slice_):
            continue
        if slice_.zones and "TPU021" not in project.allow:
            continue  # TPU021 reports that the region does not offer the size
        path = (*environment.path, "zones")
        message = f"{environment.name} has no zone for {slice_.size}: no list has one in {environment.region}"
        hint = f"add {dotted((*path, slice_.size))}, for example {environment.region}-a"
        yield Finding.of("TPU005", message, project.document.key_location(path), help=hint)


def request_body(job: Job) -> RequestBody:
    """Return the QueuedResource: one node, which is the whole slice."""
    node_spec = {"parent": _parent(job), "nodeId": job.name, "node": _node(job)}
    body = without_empty(tpu={"nodeSpec": [node_spec]}, reservationName=_reservation(job))
    # The spot tier is requested by an empty mapping, which `without_empty` would omit.
    return {**body, "spot": {}} if job.capacity.kind == "spot" else body


def _parent(job: Job) -> str:
    return f"projects/{job.environment.project}/locations/{job.zone}"


def _node(job: Job) -> dict[str, Any]:
    options = job.options
    return without_empty(
        acceleratorType=job.slice.accelerator_type,
        runtimeVersion=options.get("runtime_version") or job.slice.runtime_version,
        networkConfig=without_empty(network=options.get("network"), enableExternalIps=True),
        serviceAccount={"email": options.get("service_account") or job.account, "scope": [_SCOPE]},
        labels=dict(job.environment.labels),
        metadata={"startup-script": startup_script(job)},
    )


def _reservation(job: Job) -> str | None:
    if (reservation := job.capacity.reservation) is None:
        return None
    # A shared reservation is projects/P/reservations/NAME, without the zone that the API expects in between.
    project, _, name = reservation.removeprefix("projects/").rpartition("/reservations/")
    return f"projects/{project or job.environment.project}/locations/{job.zone}/reservations/{name}"


def startup_script(job: Job) -> str:
    """Return the bash script that every host runs as root at every boot."""
    host = (job.image or "").partition("/")[0]
    registry = host if _GOOGLE_REGISTRY.fullmatch(host) else None
    return str(_template().render(job=job, container=CONTAINER, registry=registry))


@cache
def _template() -> "Template":
    # jinja2 is imported here, because only a command that renders this target needs it.
    from tpucfg.templating import template_engine

    return template_engine().get_template(f"{NAME}/startup.sh.j2")


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of fields that exclude each other, of an unknown size, and of too much metadata."""
    yield from _exclusive((), body, ("spot", "guaranteed"))
    yield from _exclusive((), body, ("spot", "reservationName"))
    yield from _exclusive(("queueingPolicy",), body.get("queueingPolicy", {}))
    specs = body["tpu"]["nodeSpec"]
    if not specs:
        fix = "add an entry with parent, nodeId and node"
        yield service_problem(("tpu", "nodeSpec"), "it is empty, so no TPU is requested", fix)
    for index, spec in enumerate(specs):
        yield from _spec_rules(("tpu", "nodeSpec", index), spec, catalog)


def _spec_rules(path: KeyPath, spec: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    if not _PARENT.fullmatch(spec["parent"]):
        message = f"{format_value(spec['parent'], quoted=False)} is not of the form projects/PROJECT/locations/ZONE"
        yield service_problem((*path, "parent"), message, "write projects/, the project's id, /locations/ and the zone")
    if ("nodeId" in spec) == ("multisliceParams" in spec):
        yield service_problem(path, "it needs exactly one of nodeId and multisliceParams", _one_of_hint(spec, "nodeId"))
    if len(name := spec.get("nodeId", "")) > _MAX_NAME_LENGTH:
        message = f"the node name {name} has {len(name)} characters, and {_MAX_NAME_LENGTH} are allowed"
        fix = f"shorten it by {len(name) - _MAX_NAME_LENGTH}"
        yield Problem("TPU030", message, (*path, "nodeId"), fix, details=(f"the rule: {_NAMES}",))
    yield from _node_rules((*path, "node"), spec["node"], catalog)


def _node_rules(path: KeyPath, node: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    if ("acceleratorType" in node) == ("acceleratorConfig" in node):
        message = "it needs exactly one of acceleratorType and acceleratorConfig"
        yield service_problem(path, message, _one_of_hint(node, "acceleratorType"))
    if (size := node.get("acceleratorType")) is not None:
        slice_ = catalog.find(size)
        if slice_ is None or NAME not in slice_.targets:
            near = None if slice_ else catalog.nearest(size)
            message = slice_.refusals[NAME].reason if slice_ else "it is not a TPU size"
            fix = f"did you mean {near}?" if near else f"list the sizes with: tpucfg sizes --target {NAME}"
            yield service_problem((*path, "acceleratorType"), f"{format_value(size, quoted=False)}: {message}", fix)
    yield from _topology_rules((*path, "acceleratorConfig"), node.get("acceleratorConfig", {}), catalog)
    yield from _exclusive(path, node, ("networkConfig", "networkConfigs"))
    if len(node.get("description", "")) > _MAX_DESCRIPTION_LENGTH:
        excess = len(node["description"]) - _MAX_DESCRIPTION_LENGTH
        message = f"it has more than {_MAX_DESCRIPTION_LENGTH} characters"
        yield service_problem((*path, "description"), message, f"shorten it by {excess}")
    yield from _metadata_rules((*path, "metadata"), node.get("metadata", {}))


def _one_of_hint(mapping: Mapping[str, Any], field: str) -> str:
    return "delete one of the two" if field in mapping else f"add {field}"


def _topology_rules(path: KeyPath, config: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    kind, topology = config.get("type"), config.get("topology")
    topologies_of_type = [slice_.topology for slice_ in catalog.all() if kind and slice_.accelerators.get(NAME) == kind]
    # If the topology of any size is unknown, none can be refused.
    if topologies_of_type and None not in topologies_of_type and topology not in topologies_of_type:
        topologies = listed([str(shape) for shape in topologies_of_type], 14)
        fix = f"set topology to one of: {topologies}"
        yield service_problem((*path, "topology"), f"{kind} has no topology {topology}", fix)


def _metadata_rules(path: KeyPath, metadata: Mapping[str, str]) -> Iterator[Problem]:
    # surrogatepass, because strict UTF-8 raises an error for a lone surrogate, and only the size matters here.
    sizes = {key: len(value.encode("utf-8", "surrogatepass")) for key, value in metadata.items()}
    for key, size in sizes.items():
        if size > _MAX_METADATA_VALUE:
            message = f"it has {size:,} bytes, and {_MAX_METADATA_VALUE:,} are allowed for a metadata value"
            yield service_problem((*path, key), message, "move the flags to a file in the bucket, and pass its path")
    if sum(sizes.values()) + sum(map(len, sizes)) >= _MAX_METADATA:
        message = f"all metadata together must be below {_MAX_METADATA:,} bytes"
        yield service_problem(path, message, "move long values to a file in the bucket, and pass its path")


def _exclusive(path: KeyPath, mapping: Mapping[str, Any], fields: Sequence[str] = ()) -> Iterator[Problem]:
    """Yield an error if a mapping has more than one of the fields; without `fields`, more than one of any fields."""
    present = [field for field in mapping if not fields or field in fields]
    if len(present) > 1:
        first, second = present[:2]
        yield service_problem((*path, second), f"it excludes {first}", f"delete {first} or {second}")


def submission(job: Job) -> Submission:
    """Return commands that use the REST API, as no gcloud command reads the config.

    See https://cloud.google.com/tpu/docs/queued-resources.
    """
    from shlex import join

    location = (f"--project={job.environment.project}", f"--zone={job.zone}")
    gcloud = ("gcloud", "compute", "tpus")
    url = f"https://tpu.googleapis.com/v2/{_parent(job)}/queuedResources?queuedResourceId={job.name}"
    post = ("curl", "--fail-with-body", "--silent", "--show-error", "--header", "Content-Type: application/json")
    log_command = f"--command=sudo docker logs --follow {CONTAINER}"
    output = join((*gcloud, "tpu-vm", "ssh", job.name, *location, "--worker=all", log_command))
    return Submission(
        start=Command((*post, "--data-binary", "@-", url), reads_config=True, config_format="json", token=True),
        watch=Command((*gcloud, "queued-resources", "describe", job.name, *location)),
        delete=Command((*gcloud, "queued-resources", "delete", job.name, *location, "--force")),
        notes=(
            "the slice is charged until it is deleted, even after the program has ended",
            f"once the state is ACTIVE, the program's output: {output}",
        ),
    )
