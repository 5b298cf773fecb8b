"""The edit that brings the settings of one target to another, whose settings have the same names and forms."""

from collections.abc import Iterable, Mapping
from typing import Final

from tpucfg.spec import deletion_help
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import Document, KeyPath

OWN_FIELDS: Final = "extra"
"""The setting that every target has, and whose fields are those of its own messages."""
_OTHER_FIELDS: Final = "its fields are those of other objects"
LEFT_BEHIND: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("cloud-tpu", "compute-engine"): {
        "runtime_version": "the image is Google's newest for the generation",
        OWN_FIELDS: _OTHER_FIELDS,
    },
    ("compute-engine", "cloud-tpu"): {
        "disk_gb": "the service decides the size of the boot disk",
        OWN_FIELDS: _OTHER_FIELDS,
    },
}
"""The settings that cannot come along, with the reason, by the old and the new target; all others can, as they are."""


def rename_help(document: Document, path: KeyPath, targets: Iterable[str]) -> str:
    """Return the edit for settings of a target that no environment has: their new name, or else their deletion.

    Args:
        document: The spec.
        path: The path of the settings, which ends with the name of their target.
        targets: The targets that the environments have instead.
    """
    old = str(path[-1])
    new = next((name for name in targets if (old, name) in LEFT_BEHIND), None)
    node = document.node(path)
    if new is None or node is None or not isinstance(node.value, dict):
        return deletion_help(document, path)
    reasons = LEFT_BEHIND[old, new]
    new_path = (*path[:-1], new)
    present = document.node(new_path)
    has_new = present is not None and isinstance(present.value, dict)
    taken = present.value if present is not None and has_new else {}
    movable = [key for key in node.value if key not in reasons and key not in taken]
    if not movable:
        return deletion_help(document, path)
    if has_new:
        keys = listed(movable, last=" and ")
        return f"move {keys} to {dotted(new_path)}, and delete {dotted(path)}"
    left = [f"{key} ({reasons[key]})" for key in node.value if key in reasons]
    without = f", without {listed(left, last=' and ')}" if left else ""
    return f"rename {dotted(path)} to {dotted(new_path)}{without}"
