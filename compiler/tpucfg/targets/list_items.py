"""The items of lists in request bodies: what identifies an item, by which `extra` adds to it or follows it."""

from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import Any, Final

from tpucfg.yamldoc.document import KeyPath

WHOLE: Final = ("*",)
"""The identity of an item that is identified by all of its fields."""
IDENTITIES: Final[Mapping[str, tuple[str, ...]]] = {
    "dataDisks": ("sourceDisk",),
    "envFrom": WHOLE,
    "hostAliases": ("ip",),
    "items": ("key",),
    "lustreMounts": ("mountPoint",),
    "nfsMounts": ("mountPoint",),
    "params": ("parameterName",),
    "ports": ("containerPort", "protocol"),
    "tolerations": WHOLE,
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
}
"""The fields that identify an item of a list, by the list's name, where it is not `name`; `items` is metadata.

For a pod they are the keys by which Kubernetes merges, except that tolerations and sources of variables, which it
replaces, are added: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/.
"""
_FOLDERS: Final = ("mountPath", "mountPoint")


def is_object_list(value: Any) -> bool:
    """Return True for a list of mappings, which has at least one."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def identity_fields(name: str, items: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the fields that identify the items of a list that the target wrote; none if it is their position.

    The items of `extra` do not count: one without a name must not turn a list of named items into one by position.
    """
    fields = IDENTITIES.get(name, ("name",))
    return fields if fields == WHOLE or all(fields[0] in item for item in items) else ()


def item_identity(item: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Return a text that is equal for two items with one identity."""
    if tuple(fields) == WHOLE:
        return repr(sorted(item.items()))
    return repr([folder(item.get(field)) if field in _FOLDERS else item.get(field) for field in fields])


def folder(path: Any) -> Any:
    """Return a mount's path as Kubernetes reads it: absolute, and without slashes that change nothing.

    https://github.com/kubernetes/kubernetes/blob/v1.34.1/pkg/kubelet/kubelet_pods.go (makeMounts)
    """
    return "/" + normpath(path).lstrip("/") if isinstance(path, str) and path else path


def indexed(data: Any, path: KeyPath) -> KeyPath:
    """Return a path with indices for items that it names: of `metadata.items.startup-script`, the index of that item.

    A step that names no item stays as it is.
    """
    steps: list[str | int] = []
    for name in path:
        step = name
        if isinstance(data, list) and isinstance(name, str):
            names = item_names(str(steps[-1]) if steps else "", data)
            step = names.index(name) if name in names else name
        steps.append(step)
        has_step = step in data if isinstance(data, dict) else isinstance(data, list) and step in range(len(data))
        data = data[step] if has_step else None
    return tuple(steps)


def item_names(name: str, items: Sequence[Any]) -> list[str]:
    """Return what names each item of a list, given the list's own name; nothing if an item lacks it."""
    field = IDENTITIES.get(name, ("name",))[0]
    names = [item.get(field) if isinstance(item, dict) else None for item in items]
    texts = [text for text in names if isinstance(text, str)]
    return texts if len({*texts}) == len(items) else []
