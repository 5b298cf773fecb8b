"""The time of one step, from the text of the compiled program: a walk through its schedule with a clock.

The compiler states the cycles that it expects of each fusion, convolution and copy, but not those of communication, of
asynchronous copies and of kernels. Instructions are in the order in which the core runs them. What another part of the
chip does meanwhile (links, copies in the memory, the host) has a lane of its own, and costs time only where the core
waits for it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from collectives import KERNEL_SHARE, KINDS, DeviceGroup, Network, parse_group
from hlo_module import (
    CallScope,
    Computation,
    HloError,
    Instruction,
    Loop,
    Module,
    array_sizes,
    call_scope,
    called,
    parse_module,
    shape_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_INSTRUCTIONS: Final = 500_000
"""Instructions that are walked through, each loop once."""
_NO_ESTIMATE: Final = (1 << 63) - 1
"""The cycles of work that the compiler does not estimate: some reductions, and what a SparseCore does."""
_CYCLES: Final = re.compile(r'"estimated_cycles":"([0-9]+)"')
_ESTIMATE: Final = re.compile(r'"(flops|bytes_accessed)":"?([0-9]{1,20})')
_PRODUCTS: Final = frozenset(("convolution", "dot"))
_FREE: Final = frozenset(
    (
        "add-dependency", "after-all", "bitcast", "constant", "domain", "dynamic-update-slice", "get-tuple-element",
        "iota", "opt-barrier", "parameter", "partition-id", "recv", "recv-done", "replica-id", "send", "send-done",
        "tuple",
    )
)  # fmt: skip
"""Instructions that take no time, or whose time is part of another instruction's."""
_FREE_TARGETS: Final = frozenset(
    ("AllocateBuffer", "ConcatBitcast", "AssumeGatherIndicesInBound", "SliceId", "Sharding")
)
_PAIRS: Final = re.compile(r"source_target_pairs=\{[^ ]*")
_CHAIN: Final = re.compile(r'chain_id="[^"]*"')
_STARTS: Final = 'custom_call_target="AsyncCollectiveStart"'
_DONE: Final = 'custom_call_target="AsyncCollectiveDone"'
_SCALAR: Final = 1024
"""Bytes of a result that takes no time worth counting."""
_LARGE: Final = 1 << 20
"""Bytes of a result from which on an instruction without cycles is named, unless it only moves them."""
_MOVES: Final = frozenset(("concatenate", "copy", "reshape", "transpose"))
_MAX_ESTIMATE: Final = 300
"""The characters of an estimate."""
_HOST: Final = "S(5)"
"""The mark of a layout in the host's memory."""
_ATTENTION: Final = re.compile(r"(?:splash|flash)_\w*?(fwd|dkv|dq)")
_ATTENTION_PRODUCTS: Final = {"fwd": 2, "dq": 3, "dkv": 5}
"""Products of queries and keys in each kernel of attention; the one for keys and values also does what `dq` does."""
_FLOATS: Final = re.compile(r"(?:bf16|f32|f16|f8\w*)\[([0-9,]+)\]")
_MIN_OPERANDS: Final = 2
SLICES: Final = "collectives between slices"
OFFLOADED: Final = "work of the SparseCores"
CALLBACKS: Final = "waiting for functions of the host"
UNESTIMATED: Final = "arithmetic without an estimate by the compiler"
ITERATIONS: Final = "iterations of loops whose length is data"


class StepSchedule(NamedTuple):
    """The time of a step."""

    seconds: float
    parts: dict[str, float]
    is_reliable: bool
    uncounted: frozenset[str]

    def payload(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        parts = {
            part: float(f"{seconds:.4g}") for part, seconds in self.parts.items() if seconds > 0
        }
        return {
            "seconds": float(f"{self.seconds:.4g}"),
            "parts": parts,
            "is_reliable": self.is_reliable,
            "uncounted": sorted(self.uncounted),
        }


def schedule(text: str, network: Network) -> StepSchedule:
    """Return the time of a compiled program.

    Raises:
        HloError: The text has another form than expected.
    """
    try:
        module = parse_module(text)
        walk = _Walk(module, network)
        clock = walk.run(module.entry, CallScope(module.entry, lambda _number, _path: None))
    except (LookupError, ValueError, RecursionError, OverflowError) as error:
        raise HloError(f"{type(error).__name__}: {error}") from None
    return StepSchedule(clock.now, clock.parts, _HOST not in text, frozenset(walk.uncounted))


class _Clock:
    """The time of one computation from its start on, by part; and the lanes beside the core."""

    def __init__(self) -> None:
        self.now = 0.0
        self.parts: dict[str, float] = {}
        self._free: dict[str, float] = {}
        self._ready: dict[str, tuple[float, str]] = {}

    def spend(self, part: str, seconds: float) -> None:
        """Let the core work."""
        self.now += seconds
        self.parts[part] = self.parts.get(part, 0.0) + seconds

    def add(self, other: _Clock, times: int = 1) -> None:
        """Let the core run a computation."""
        for part, seconds in other.parts.items():
            self.spend(part, seconds * times)

    def start(self, key: str, part: str, seconds: float, lane: str = "") -> None:
        """Start work on a lane, behind what it has to do before; by default the one lane of its part."""
        lane = lane or part
        self._free[lane] = max(self.now, self._free.get(lane, 0.0)) + seconds
        self._ready[key] = (self._free[lane], part)

    def rename(self, key: str, new: str) -> None:
        """Let work that has started have another name."""
        if key in self._ready:
            self._ready[new] = self._ready[key]

    def wait(self, key: str) -> None:
        """Let the core wait until work is done; work of an earlier iteration is."""
        ready, part = self._ready.get(key, (0.0, ""))
        if ready > self.now:
            self.spend(part, ready - self.now)


class _Walk:
    def __init__(self, module: Module, network: Network) -> None:
        self._module = module
        self._network = network
        self._chip = network.chip
        self._rest = _MAX_INSTRUCTIONS
        self._products: dict[str, bool] = {}
        self.uncounted: set[str] = set()

    def run(self, computation: Computation, scope: CallScope) -> _Clock:
        """Return the time of a computation where it is called."""
        clock = _Clock()
        self._rest -= len(computation.lines)
        if self._rest < 0:
            raise HloError("too many instructions")
        for name in computation.lines:
            self._step(clock, computation, computation[name], scope)
        return clock

    def _step(
        self, clock: _Clock, computation: Computation, instruction: Instruction, scope: CallScope
    ) -> None:
        opcode = instruction.opcode
        if opcode in KINDS:
            self._exchange(clock, instruction.name, computation, instruction, opcode)
            clock.wait(instruction.name)
        elif opcode.endswith(("-start", "-update", "-done")):
            self._asynchronous(clock, computation, instruction)
        elif opcode in {"while", "conditional", "call"}:
            self._control(clock, instruction, scope)
        elif opcode == "send" and "_xla_megascale" in instruction.attributes:
            self.uncounted.add(SLICES)
        elif opcode == "send" and "is_host_transfer=true" in instruction.attributes:
            self.uncounted.add(CALLBACKS)
        elif (
            opcode == "custom-call"
            and 'custom_call_target="tpu_custom_call"' in instruction.attributes
        ):
            self._kernel(clock, computation, instruction)
        elif opcode not in _FREE:
            self._compute(clock, instruction)

    def _asynchronous(
        self, clock: _Clock, computation: Computation, instruction: Instruction
    ) -> None:
        if instruction.opcode in _FREE:
            return
        if instruction.opcode.endswith("-start"):
            self._start(clock, computation, instruction)
        elif instruction.opcode.endswith("-update"):
            clock.rename(instruction.operands[0], instruction.name)
        else:
            clock.wait(instruction.operands[0])

    def _control(self, clock: _Clock, instruction: Instruction, scope: CallScope) -> None:
        if instruction.opcode == "while":
            self._loop(clock, instruction, scope)
        elif instruction.opcode == "call":
            inner = called(self._module, instruction)
            clock.add(self.run(inner, call_scope(self._module, scope, inner, instruction.operands)))
        else:
            clock.add(max(self._branches(instruction, scope), key=lambda branch: branch.now))

    def _compute(self, clock: _Clock, instruction: Instruction) -> None:
        """Let the core run an instruction by the cycles that the compiler states, with what it sends meanwhile."""
        inner = self._module.computations.get(instruction.attribute("calls") or "")
        sends = inner is not None and self._send(clock, inner)
        cycles = _CYCLES.search(instruction.attributes)
        if cycles and int(cycles[1]) != _NO_ESTIMATE:
            part = "products" if self._is_product(instruction, inner) else "fusions"
            clock.spend(part, int(cycles[1]) / self._chip.clock)
        elif not sends and not _is_free(instruction):
            size, opcode = sum(array_sizes(instruction.type)), instruction.opcode
            clock.spend("fusions", 2 * size / self._chip.hbm)  # at least, it reads and writes
            if size > _LARGE and opcode not in _MOVES:
                self.uncounted.add(UNESTIMATED if opcode == "fusion" else f"arithmetic of {opcode}")

    def _send(self, clock: _Clock, inner: Computation) -> bool:
        """Start the collectives of a fusion, or wait for them; return false for a fusion without any.

        The compiler spreads an operation over several fusions, each of which has it in whole: in the first one it
        starts, with the last one it ends. The link between them is the number of their chain.
        """
        if not inner.contains(KINDS):
            return False
        text = "".join(inner.lines.values())
        for name in inner.lines:
            each = inner[name]
            if each.opcode in KINDS:
                chain = _CHAIN.search(each.attributes)
                key = chain[0] if chain else name
                if not chain or _STARTS in text:
                    self._exchange(clock, key, inner, each, each.opcode)
                if not chain or _DONE in text:
                    clock.wait(key)
        return True

    def _is_product(self, instruction: Instruction, inner: Computation | None) -> bool:
        if inner is None:
            return instruction.opcode in _PRODUCTS
        if inner.name not in self._products:
            self._products[inner.name] = False  # ends a recursion, which a program does not have
            nested = (name for name in inner.lines if inner[name].opcode == "fusion")
            self._products[inner.name] = inner.contains(_PRODUCTS) or any(
                self._is_product(inner[name], called(self._module, inner[name])) for name in nested
            )
        return self._products[inner.name]

    def _start(self, clock: _Clock, computation: Computation, instruction: Instruction) -> None:
        """Start an asynchronous operation on its lane."""
        kind = instruction.opcode.removesuffix("-start")
        if kind in KINDS:
            self._exchange(clock, instruction.name, computation, instruction, kind)
            return
        name = instruction.attribute("calls") or instruction.attribute("to_apply")
        inner = self._module.computations.get(name or "")
        if inner and inner.contains(KINDS):
            for each in (inner[name] for name in inner.lines):
                if each.opcode in KINDS:
                    self._exchange(clock, instruction.name, inner, each, each.opcode)
        elif kind == "call" or "sparsecore" in instruction.attributes:
            self.uncounted.add(OFFLOADED)
        else:
            moved = min(
                (size for size in array_sizes(instruction.type) if size > _SCALAR), default=0
            )
            is_host = _HOST in instruction.type
            lane, speed = ("host", self._chip.host) if is_host else ("copies", self._chip.hbm)
            clock.start(instruction.name, lane, moved / speed)

    def _exchange(
        self, clock: _Clock, key: str, computation: Computation, instruction: Instruction, kind: str
    ) -> None:
        """Start a collective operation; those that send in opposite directions of a ring do not wait for each other."""
        pairs = _PAIRS.search(instruction.attributes)
        seconds = self._collective(computation, instruction, kind)
        clock.start(key, "communication", seconds, pairs[0] if pairs else "")

    def _is_within_chips(self, instruction: Instruction) -> bool:
        pairs = _PAIRS.search(instruction.attributes)
        devices = re.findall(r"\{([0-9]+),([0-9]+)\}", pairs[0]) if pairs else []
        chip = self._network.chip.devices
        return bool(devices) and all(
            int(source) // chip == int(target) // chip for source, target in devices
        )

    def _collective(self, computation: Computation, instruction: Instruction, kind: str) -> float:
        operand = sum(sum(array_sizes(computation[name].type)) for name in instruction.operands)
        if kind == "all-reduce" and computation[computation.root].opcode == "dynamic-slice":
            kind = "reduce-scatter"  # of which each device keeps its part
        at = instruction.attributes.find("replica_groups=")
        if kind == "collective-permute":
            if self._is_within_chips(instruction):
                return 0.0
            return self._network.seconds(
                kind, operand, DeviceGroup(self._network.devices, adjacent=False)
            )
        if at < 0:
            raise HloError(f"{instruction.name} has no groups")
        # Without what is behind, which would make every text of a cache unique.
        groups = instruction.attributes[at + len("replica_groups=") :].partition(
            ", use_global_device_ids"
        )[0]
        return self._network.seconds(
            kind, operand, parse_group(groups.partition(", dimensions")[0], self._network.devices)
        )

    def _kernel(self, clock: _Clock, computation: Computation, instruction: Instruction) -> None:
        """Let a kernel run at a share of the peak, by its author's estimate or as attention of its operands' shapes."""
        at = instruction.attributes.find('"cost_estimate"')
        estimate = (
            dict(_ESTIMATE.findall(instruction.attributes, at, at + _MAX_ESTIMATE))
            if at >= 0
            else {}
        )
        flops, moved = (float(estimate.get(name, 0)) for name in ("flops", "bytes_accessed"))
        if not estimate:
            flops = self._attention(computation, instruction)
        if not flops and not moved:
            self.uncounted.add("Pallas kernels without a cost estimate")
        clock.spend(
            "kernels", max(flops / (self._chip.flops * KERNEL_SHARE), moved / self._chip.hbm)
        )

    def _attention(self, computation: Computation, instruction: Instruction) -> float:
        """Return the operations of a kernel of causal attention, by its name and operands; 0 for another kernel."""
        name = _ATTENTION.search(instruction.name + instruction.attributes)
        shapes = [
            shape_of(match[1])
            for operand in instruction.operands
            if (match := _FLOATS.match(computation[operand].type))
        ]
        if not name or len(shapes) < _MIN_OPERANDS:
            return 0.0
        queries, keys = shapes[:2]
        return (
            _ATTENTION_PRODUCTS[name[1]] * math.prod(queries) * keys[-2]
        )  # two operations, half of them masked

    def _loop(self, clock: _Clock, instruction: Instruction, scope: CallScope) -> None:
        loop = Loop(self._module, scope, instruction)
        once, trips = self.run(loop.body, loop.body_scope()), loop.trip_count()
        if trips is None and once.now:
            self.uncounted.add(ITERATIONS)
        clock.add(once, 1 if trips is None else trips)

    def _branches(self, instruction: Instruction, scope: CallScope) -> Iterator[_Clock]:
        names = (
            name
            for attribute in ("branch_computations", "true_computation", "false_computation")
            for name in instruction.computations(attribute)
        )
        for number, name in enumerate(names):
            branch = self._module.computations[name]
            yield self.run(
                branch, call_scope(self._module, scope, branch, (instruction.operands[1 + number],))
            )


def _is_free(instruction: Instruction) -> bool:
    """Return true for an instruction on numbers, or one that only names a place in the memory."""
    target = re.search(r'custom_call_target="([^"]*)"', instruction.attributes)
    return sum(array_sizes(instruction.type)) <= _SCALAR or bool(
        target and target[1] in _FREE_TARGETS
    )
