"""The least bytes that a device sends to other chips in one step, from the text of the compiled program.

Each collective operation has a least traffic that no algorithm and no network can avoid: what every chip has to receive
and does not have. The traffic of all chips, divided by their devices, is no more than that of the busiest device. The
operations are counted as often as the loops around them run.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from hlo_text import Computation, HloError, Instruction, Module, array_bytes, parse_module
from hlo_trips import Loop, Scope, call_scope, called
from replica_groups import Groups, parse_groups, parse_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SLICES: Final = "collectives between slices"
"""Traffic of the network of the data centre, which connects the slices."""
_RAGGED: Final = "ragged-all-to-all"
"""An operation whose sizes are data."""


class Traffic(NamedTuple):
    """The traffic of a program, or of a part of it."""

    bytes: Fraction = Fraction(0)
    """Bytes that a device sends to other chips on average."""
    uncounted: frozenset[str] = frozenset()
    """Kinds of communication that are not in `bytes`."""

    def plus(self, other: Traffic) -> Traffic:
        """Return the traffic of both parts."""
        return Traffic(self.bytes + other.bytes, self.uncounted | other.uncounted)


class Collectives(NamedTuple):
    """The traffic of a step."""

    ici: int | None
    """Bytes that a device sends to other chips of its slice; None if the text cannot be read."""
    uncounted: frozenset[str]


class Members(NamedTuple):
    """The number of devices and chips of one group."""

    devices: int
    chips: int
    pairs_apart: int
    """Ordered pairs of devices that are on different chips."""


_MOVED: Final[Mapping[str, Callable[[int, Members], Fraction]]] = {
    # Every part of the result has to reach each of the other chips once.
    "all-gather": lambda size, group: Fraction(size * group.devices * (group.chips - 1)),
    "collective-broadcast": lambda size, group: Fraction(size * (group.chips - 1)),
    # Every part of the sum needs the parts of the other chips.
    "reduce-scatter": lambda size, group: Fraction(size * (group.chips - 1)),
    "all-reduce": lambda size, group: Fraction(2 * size * (group.chips - 1)),
    "all-to-all": lambda size, group: Fraction(size * group.pairs_apart, group.devices),
}
"""The bytes that the chips of one group move, of an operand's size in bytes."""
_COLLECTIVES: Final = frozenset((*_MOVED, "collective-permute", _RAGGED))
_STARTS: Final = frozenset(f"{name}-start" for name in _COLLECTIVES)
_CALLS: Final = frozenset(("fusion", "call", "call-start", "async-start"))
_ACTIVE: Final = _COLLECTIVES | _STARTS | _CALLS | {"while", "conditional", "send", "custom-call"}


def collective_bytes(text: str, chips: Sequence[int]) -> Collectives:
    """Return the traffic of a compiled program; `chips` has the chip of each of its partitions."""
    try:
        module = parse_module(text, _ACTIVE)
        traffic = _Counter(module, chips).total(module.entry, Scope(module.entry, lambda _number, _path: None))
    except (HloError, LookupError, ValueError, RecursionError):
        return Collectives(None, frozenset())
    return Collectives(int(traffic.bytes), traffic.uncounted)


class _Counter:
    def __init__(self, module: Module, chips: Sequence[int]) -> None:
        self.module = module
        self.chips = chips
        self._is_silent: dict[str, bool] = {}

    def total(self, computation: Computation, scope: Scope) -> Traffic:
        """Return the traffic of a computation where it is called."""
        traffic = Traffic()
        for name in computation.active:
            traffic = traffic.plus(self._of(computation, computation[name], scope))
        return traffic

    def _of(self, computation: Computation, instruction: Instruction, scope: Scope) -> Traffic:
        opcode = instruction.opcode.removesuffix("-start")
        if opcode in _COLLECTIVES:
            return self._collective(computation, instruction, opcode)
        if instruction.opcode in _CALLS:
            inner = called(self.module, instruction)
            if self._silent(inner):
                return Traffic()
            return self.total(inner, call_scope(self.module, scope, inner, instruction.operands))
        if opcode == "while":
            return self._loop(instruction, scope)
        if opcode == "conditional":
            return self._conditional(instruction, scope)
        return _between_slices(instruction)

    def _silent(self, computation: Computation) -> bool:
        """Return true for a computation without communication: most fusions, which are many."""
        if computation.name not in self._is_silent:
            self._is_silent[computation.name] = True  # ends a recursion, which a program does not have
            self._is_silent[computation.name] = all(
                computation[name].opcode == "custom-call"
                or (computation[name].opcode in _CALLS and self._silent(called(self.module, computation[name])))
                for name in computation.active
            )
        return self._is_silent[computation.name]

    def _loop(self, instruction: Instruction, scope: Scope) -> Traffic:
        loop = Loop(self.module, scope, instruction)
        once = self.total(loop.body, loop.body_scope())
        if once == Traffic():
            return once
        trips = loop.trip_count()
        if trips is None:
            raise HloError(f"the trip count of {instruction.name} is unknown")
        return Traffic(once.bytes * trips, once.uncounted)

    def _conditional(self, instruction: Instruction, scope: Scope) -> Traffic:
        """Return the traffic of the branch with the least."""
        names = [
            name
            for attribute in ("branch_computations", "true_computation", "false_computation")
            for name in instruction.computations(attribute)
        ]
        branches = []
        for number, name in enumerate(names):
            branch = self.module.computations[name]
            operands = (instruction.operands[1 + number],)
            branches.append(self.total(branch, call_scope(self.module, scope, branch, operands)))
        return min(branches, key=lambda traffic: traffic.bytes)

    def _collective(self, computation: Computation, instruction: Instruction, opcode: str) -> Traffic:
        if _is_continued(computation, instruction):
            return Traffic()
        if opcode == _RAGGED:
            return Traffic(uncounted=frozenset((_RAGGED,)))
        size = sum(array_bytes(computation[name].type) for name in instruction.operands)
        if opcode == "collective-permute":
            pairs = parse_pairs(_behind(instruction, "source_target_pairs="))
            moved = Fraction(size * sum(self.chips[source] != self.chips[target] for source, target in pairs))
        else:
            groups = parse_groups(_behind(instruction, "replica_groups="), len(self.chips))
            if groups is None:
                raise HloError(f"the groups of {instruction.name} have an unknown form")
            kind = "reduce-scatter" if opcode == "all-reduce" and _keeps_a_part(computation) else opcode
            moved = self._moved(kind, size, groups)
        return Traffic(moved / len(self.chips))

    def _moved(self, kind: str, size: int, groups: Groups) -> Fraction:
        return sum((_MOVED[kind](size, self._members(group)) for group in groups), Fraction(0))

    def _members(self, group: tuple[int, ...]) -> Members:
        chips = [self.chips[device] for device in group]
        counts = [chips.count(chip) for chip in set(chips)]
        return Members(len(group), len(counts), len(group) ** 2 - sum(count**2 for count in counts))


def _behind(instruction: Instruction, name: str) -> str:
    """Return the attributes from the value of one of them on."""
    start = instruction.attributes.find(name)
    if start < 0:
        raise HloError(f"{instruction.name} has no {name}")
    # Without the metadata behind it, which would make every text of a cache unique.
    end = instruction.attributes.find(", use_global_device_ids", start)
    return instruction.attributes[start + len(name) : end if end >= 0 else None]


def _is_continued(computation: Computation, instruction: Instruction) -> bool:
    """Return true for a further part of an operation that the compiler spreads over several fusions.

    Each part of such a chain is written as the whole operation; only the fusion of the first one has an
    `AsyncCollectiveStart`.
    """
    if 'chain_id="' not in instruction.attributes:
        return False
    return not any(
        'custom_call_target="AsyncCollectiveStart"' in computation.lines[name] for name in computation.active
    )


def _keeps_a_part(computation: Computation) -> bool:
    """Return true for the fusion of a sum and of the slice that each device keeps: a reduce-scatter."""
    return computation[computation.root].opcode == "dynamic-slice"


def _between_slices(instruction: Instruction) -> Traffic:
    """Return the traffic of a `send`, of which only those to another slice are known."""
    if instruction.opcode != "send" or "_xla_megascale" not in instruction.attributes:
        is_host = "is_host_transfer=true" in instruction.attributes
        if instruction.opcode == "send" and not is_host:
            raise HloError(f"the receiver of {instruction.name} is unknown")
        return Traffic()
    return Traffic(uncounted=frozenset((SLICES,)))
