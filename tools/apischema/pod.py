"""JSON Schemas of the Kubernetes messages in a JobSet's jobs, from the models of the package `kubernetes`.

A model has its fields (`attribute_map`), their types (`openapi_types`), their descriptions (docstrings) and, in
the checks of its setters, the required fields. Everything else is data in this module: enums, which the
models describe in prose, and the strings that are quantities.
"""

import re
from collections.abc import Collection, Mapping
from importlib.metadata import version
from typing import Any

from kubernetes.client import Configuration, models

from apischema import Schema, closed, described, map_of
from tpucfg.targets.objects import SERVER_METADATA

SOURCE = f"kubernetes {version('kubernetes')}"

LEFT_OUT = {
    "ObjectMeta": {*SERVER_METADATA, "generateName", "ownerReferences"},
    "PersistentVolumeClaim": {"status"},
    "PodSpec": {"ephemeralContainers"},
}
"""Fields by message that a file must not contain.

Only the system writes most of them. `ephemeralContainers` cannot be set when a pod is created. `generateName` and
`ownerReferences` are removed from a template by JobSet's CustomResourceDefinition; `own_metadata` has them.
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/ and …/workload-resources/pod-v1/
"""

_PULL = "Always IfNotPresent Never"
_RESTART = "Always Never OnFailure"
_TERMINATION_MESSAGE = "FallbackToLogsOnError File"
_INCLUSION = "Honor Ignore"
_PROFILE = "Localhost RuntimeDefault Unconfined"

# Taken from the constants of k8s.io/api v0.36.0: https://github.com/kubernetes/api/blob/v0.36.0/core/v1/types.go,
# …/batch/v1/types.go and https://github.com/kubernetes/apimachinery/blob/v0.36.0/pkg/apis/meta/v1/types.go.
ENUMS = {
    "AppArmorProfile.type": _PROFILE,
    "AzureDiskVolumeSource.cachingMode": "None ReadOnly ReadWrite",
    "AzureDiskVolumeSource.kind": "Dedicated Managed Shared",
    "Container.imagePullPolicy": _PULL,
    "Container.restartPolicy": _RESTART,
    "Container.terminationMessagePolicy": _TERMINATION_MESSAGE,
    "ContainerPort.protocol": "SCTP TCP UDP",
    "ContainerResizePolicy.resourceName": "cpu memory",
    "ContainerResizePolicy.restartPolicy": "NotRequired RestartContainer",
    "ContainerRestartRule.action": "Restart RestartAllContainers",
    "ContainerRestartRuleOnExitCodes.operator": "In NotIn",
    "HTTPGetAction.scheme": "HTTP HTTPS",
    "ImageVolumeSource.pullPolicy": _PULL,
    "JobSpec.completionMode": "Indexed NonIndexed",
    "JobSpec.podReplacementPolicy": "Failed TerminatingOrFailed",
    "LabelSelectorRequirement.operator": "DoesNotExist Exists In NotIn",
    "NodeSelectorRequirement.operator": "DoesNotExist Exists Gt In Lt NotIn",
    "PersistentVolumeClaimSpec.accessModes": "ReadOnlyMany ReadWriteMany ReadWriteOnce ReadWriteOncePod",
    "PersistentVolumeClaimSpec.volumeMode": "Block Filesystem",
    "PodFailurePolicyOnExitCodesRequirement.operator": "In NotIn",
    "PodFailurePolicyOnPodConditionsPattern.status": "False True Unknown",
    "PodFailurePolicyRule.action": "Count FailIndex FailJob Ignore",
    "PodOS.name": "linux windows",
    "PodSecurityContext.fsGroupChangePolicy": "Always OnRootMismatch",
    "PodSecurityContext.seLinuxChangePolicy": "MountOption Recursive",
    "PodSecurityContext.supplementalGroupsPolicy": "Merge Strict",
    "PodSpec.dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
    "PodSpec.preemptionPolicy": "Never PreemptLowerPriority",
    "PodSpec.restartPolicy": _RESTART,
    "SeccompProfile.type": _PROFILE,
    "SecurityContext.procMount": "Default Unmasked",
    "Toleration.effect": "NoExecute NoSchedule PreferNoSchedule",
    "Toleration.operator": "Equal Exists Gt Lt",
    "TopologySpreadConstraint.nodeAffinityPolicy": _INCLUSION,
    "TopologySpreadConstraint.nodeTaintsPolicy": _INCLUSION,
    "TopologySpreadConstraint.whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
    "VolumeMount.mountPropagation": "Bidirectional HostToContainer None",
    "VolumeMount.recursiveReadOnly": "Disabled Enabled IfPossible",
}
"""Values of a closed enum, separated by blanks."""

PATTERNS = {
    "EmptyDirVolumeSource.medium": "^(|Memory|HugePages|HugePages-.+)$",
    "HostPathVolumeSource.type": "^(|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket)$",
    "Lifecycle.stopSignal": "^SIG[A-Z0-9]+([+-][0-9]+)?$",
}
"""Fields with an enum that is open or has an empty member."""

QUANTITIES = {
    "EmptyDirVolumeSource.sizeLimit",
    "PodSpec.overhead",
    "ResourceFieldSelector.divisor",
    "ResourceRequirements.limits",
    "ResourceRequirements.requests",
    "VolumeResourceRequirements.limits",
    "VolumeResourceRequirements.requests",
}
"""Fields with a Kubernetes quantity, or a map of quantities; the models declare them as strings."""

_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
# https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
QUANTITY: Schema = {
    "type": ["integer", "string"],
    "pattern": rf"^[+-]?{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?{_NUMBER})?$",
}

_SCALARS: Mapping[str, Schema] = {
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "object": {
        "type": ["integer", "string"]
    },  # in a pod only IntOrString, a port by number or name, has no other type
    "str": {"type": "string"},
}
_CONTAINER = re.compile(r"^(?:list|dict)\[(?:str, )?(.+)\]$")
_DOCUMENTED = re.compile(r"\.  # noqa: E501\s+(?!\s|:return:)(.+?)  # noqa: E501", re.DOTALL)


def name_of(model: str) -> str:
    """Return the message's name for the name of its model: `PodSpec` for `V1PodSpec`."""
    return re.sub(r"^(Core)?V1(?=[A-Z])", "", model)


def reachable(*roots: str) -> dict[str, Schema]:
    """Return the schemas of these models' messages and of all messages below them, by name."""
    schemas: dict[str, Schema] = {}
    waiting = list(roots)
    while waiting:
        model = waiting.pop()
        if name_of(model) not in schemas:
            schemas[name_of(model)] = _message(getattr(models, model), waiting)
    return schemas


def own_metadata() -> dict[str, Schema]:
    """Return the schemas of the metadata of an object that is no template, and of all messages below it."""
    waiting: list[str] = []
    metadata = _message(models.V1ObjectMeta, waiting, SERVER_METADATA)
    return {"OwnObjectMeta": metadata, **reachable(*waiting)}


def _message(model: Any, waiting: list[str], left_out: Collection[str] | None = None) -> Schema:
    message = name_of(model.__name__)
    left_out = LEFT_OUT.get(message, ()) if left_out is None else left_out
    kept = {attribute: key for attribute, key in model.attribute_map.items() if key not in left_out}
    properties: dict[str, Schema] = {}
    for attribute, key in kept.items():
        field = _type(f"{message}.{key}", model.openapi_types[attribute], waiting)
        documented = _DOCUMENTED.search(getattr(model, attribute).__doc__)
        properties[key] = described(field, documented[1] if documented else "")
    return closed(
        properties, [kept[attribute] for attribute in _required(model) if attribute in kept]
    )


def _required(model: Any) -> list[str]:
    """Return the attributes whose setters reject None."""
    unchecked, checked = Configuration(), Configuration()
    unchecked.client_side_validation = False
    blank = model(local_vars_configuration=unchecked)
    blank.local_vars_configuration = checked
    return [attribute for attribute in model.attribute_map if _rejects_none(blank, attribute)]


def _rejects_none(blank: object, attribute: str) -> bool:
    try:
        setattr(blank, attribute, None)
    except ValueError:
        return True
    return False


def _type(location: str, kind: str, waiting: list[str]) -> Schema:
    if container := _CONTAINER.match(kind):
        inner = _type(location, container[1], waiting)
        return {"type": "array", "items": inner} if kind.startswith("list") else map_of(inner)
    if scalar := _declared_schema(location) or _SCALARS.get(kind):
        return dict(scalar)
    waiting.append(kind)
    return {"$ref": f"#/$defs/{name_of(kind)}"}


def _declared_schema(location: str) -> Schema | None:
    if location in QUANTITIES:
        return QUANTITY
    if location in ENUMS:
        return {"type": "string", "enum": ENUMS[location].split()}
    return {"type": "string", "pattern": PATTERNS[location]} if location in PATTERNS else None
