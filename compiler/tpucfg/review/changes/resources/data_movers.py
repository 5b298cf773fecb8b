"""Resources that delete or copy data themselves, or that run code while the stack is updated."""

from collections.abc import Iterator
from typing import Any, Final

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.resources import boolean, input_at
from tpucfg.review.changes.resources.resource_change import UNKNOWN, Step

_TRANSFER: Final = "gcp:storage/transferJob:TransferJob"
_BATCH: Final = "gcp:storage/batchOperationsJob:BatchOperationsJob"
_OBJECT: Final = "gcp:storage/bucketObject:BucketObject"
_TRANSFER_DELETIONS: Final = {
    "deleteObjectsUniqueInSink": "deletes objects that only its destination has",
    "deleteObjectsFromSourceAfterTransfer": "deletes the objects that it has copied",
    "overwriteObjectsAlreadyExistingInSink": "overwrites objects of its destination",
}
"""Options of Storage Transfer Service: https://cloud.google.com/storage-transfer/docs/reference/rest/v1/TransferSpec."""
_JUDGED_PACKAGES: Final = ("gcp:", "pulumi:", "random:", "time:", "tls:", "std:")
_COMMAND_PACKAGES: Final = ("command:", "pulumi-python:", "pulumi-nodejs:", "terraform:", "docker:", "docker-build:")
_HARMLESS_PACKAGES: Final = (*_JUDGED_PACKAGES, *_COMMAND_PACKAGES)
"""Packages that are judged here, that run no code, or that `option_changes.py` reports as commands."""


def mover_statements(step: Step) -> Iterator[Statement]:
    """Yield what a created or changed resource does to data by itself."""
    resource = step.after or step.before
    if resource is None or step.op == "same":
        return
    if not resource.type.startswith(_HARMLESS_PACKAGES):
        yield Statement("of type {} is not Google's: its effect is unknown", (resource.type,), Risk.UNKNOWN)
    if step.after is None:
        return
    inputs = step.after.inputs
    if resource.type == _TRANSFER:
        yield Statement("copies objects from {} to {}", _ends(inputs.get("transferSpec")), Risk.ACCESS)
        for option, text in _TRANSFER_DELETIONS.items():
            value = input_at(inputs, ("transferSpec", "transferOptions", option))
            if value is not None and boolean(value) is not False:
                yield Statement(f"{text} ({{}})", (option,), Risk.DESTRUCTIVE)
    if resource.type == _OBJECT:
        names = tuple(str(inputs.get(key, UNKNOWN)) for key in ("name", "bucket"))
        yield Statement("writes the object {} of the bucket {}, over one of that name", names, Risk.CAUTION)
    if resource.type == _BATCH and inputs.get("deleteObject") is not None:
        yield Statement("deletes the objects of a list or of a prefix ({})", ("deleteObject",), Risk.DESTRUCTIVE)


def _ends(spec: Any) -> tuple[str, str]:
    """Return the source and the destination of a transfer."""
    ends = ["an unknown place", "an unknown place"]
    for key, value in spec.items() if isinstance(spec, dict) else ():
        if isinstance(value, dict) and ("DataSource" in key or "DataSink" in key):
            name = value.get("bucketName") or value.get("rootDirectory") or value.get("listUrl") or key
            ends["DataSink" in key] = str(name)
    return ends[0], ends[1]
