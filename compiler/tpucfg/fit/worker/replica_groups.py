"""The groups of devices that a collective operation communicates in.

A group is a list of partition numbers. The compiled program writes the groups of an operation in one of three forms:
`{{0,1},{2,3}}`, `[2,4]<=[4,2]T(1,0)` (a reshaped and transposed range), and `mesh['x'=2,'y'=4] {'x'}` (the axes of a
mesh). https://github.com/openxla/xla/blob/main/xla/hlo/ir/mesh_and_axis.cc prints the last one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

Groups = tuple[tuple[int, ...], ...]

_NUMBERS: Final = r"[0-9]+(?:,[0-9]+)*"
_IOTA: Final = re.compile(rf"\[({_NUMBERS})\]<=\[({_NUMBERS})\](?:T\(({_NUMBERS})\))?")
_DEVICES: Final = rf"\[{_NUMBERS}\](?:T\({_NUMBERS}\))?|{_NUMBERS}"
_MESH: Final = re.compile(rf"mesh\[([^\]]*)\](?:, device_ids=\(({_DEVICES})\))? \{{([^}}]*)\}}")
_ORDER: Final = re.compile(rf"\[({_NUMBERS})\](?:T\(({_NUMBERS})\))?")
_LISTED: Final = re.compile(r"\{(?:\{[0-9,]*\},?)*\}")
_AXIS: Final = re.compile(r"(.+?)(?::\(([0-9]+)\)([0-9]+))?")


@lru_cache(maxsize=1000)
def parse_groups(attributes: str, devices: int) -> Groups | None:
    """Return the groups of `replica_groups=` at the start of a text; None for a form that is not known."""
    match = _LISTED.match(attributes)
    if match:
        groups = tuple(_numbers(group) for group in re.findall(r"\{([0-9,]+)\}", match[0]))
        return groups or (tuple(range(devices)),)
    match = _IOTA.match(attributes)
    if match:
        return _rows(_arrange(match[2], match[3]).reshape(_numbers(match[1])))
    match = _MESH.match(attributes)
    return _mesh_groups(match[1], match[2], match[3]) if match else None


def parse_pairs(attributes: str) -> Groups:
    """Return the pairs of `source_target_pairs=` at the start of a text."""
    match = _LISTED.match(attributes)
    return tuple(_numbers(pair) for pair in re.findall(r"\{([0-9,]+)\}", match[0])) if match else ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _arrange(shape: str, order: str | None) -> Any:
    """Return the numbers from 0 in an array of a shape, with its axes in another order."""
    import numpy as np

    array = np.arange(np.prod(_numbers(shape))).reshape(_numbers(shape))
    return array.transpose(_numbers(order)) if order else array


def _rows(array: Any) -> Groups:
    return tuple(tuple(map(int, row)) for row in array)


def _mesh_groups(axes_text: str, device_ids: str | None, group_axes: str) -> Groups | None:
    """Return the groups of the devices that differ only along some axes, or parts of axes, of a mesh."""
    import numpy as np

    names, sizes = zip(*(axis.rsplit("=", 1) for axis in axes_text.split(",")))  # noqa: B905 - of equal length
    shape = tuple(map(int, sizes))
    order = _ORDER.fullmatch(device_ids or "")
    if device_ids is None:
        array = np.arange(np.prod(shape))
    else:
        array = _arrange(order[1], order[2]) if order else np.array(_numbers(device_ids))
    parts: list[int] = []
    grouped: list[int] = []
    selected = {match[1]: match for match in map(_AXIS.fullmatch, filter(None, group_axes.split(","))) if match}
    if len(selected) != len([axis for axis in group_axes.split(",") if axis]) or not selected.keys() <= set(names):
        return None
    for name, size in zip(names, shape):  # noqa: B905 - of equal length
        # `'x':(2)4` is the part of axis x between its first factor, 2, and what remains behind factor 4.
        match = selected.get(name)
        before, own = (int(match[2]), int(match[3])) if match and match[2] else (1, size)
        if match:
            grouped.append(len(parts) + 1)
        parts += (before, own, size // (before * own))
    array = array.reshape(parts)
    kept = [axis for axis in range(len(parts)) if axis not in grouped]
    group_size = int(np.prod([parts[axis] for axis in grouped]))
    return _rows(array.transpose(kept + grouped).reshape(-1, group_size))
