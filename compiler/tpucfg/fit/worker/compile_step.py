"""Compile one training step for one TPU slice: the program that `tpucfg fit` runs in the user's Python.

python -B compile_step.py FD    reads a request in JSON from stdin, and writes its answers to file descriptor FD

An answer is one line of JSON: {"phase": name} when a phase begins, and {"result": ...} or {"error": ...} at the end.
Stdout and stderr belong to the user's program. Nothing of tpucfg is imported: the user's Python does not have it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from hlo_traffic import collective_bytes
from jaxpr_access import Argument, device_bytes, result_bytes, untouched_bytes
from jaxpr_flops import Work, count_work
from maxtext_step import is_maxtext, load_maxtext
from step_error import StepError, describe
from tpu_topology import Refusal, available_hbm, check_packages, parse_refusal, slice_devices
from user_function import OpenedFiles, Step, call_function, imported_files, load_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_Figure = TypeVar("_Figure")
_PARENT_SECONDS: Final = 1.0
"""Interval of looking for the parent process."""
_FLAG_VARIABLES: Final = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")
"""The variables with flags of the compiler, which a program can set before libtpu is initialized."""
_EFFORTS: Final = (
    "jax_compiler_enable_remat_pass",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
    "jax_memory_fitting_level",
    "jax_optimization_level",
)
"""The settings of JAX that it hands to the compiler, beside the StableHLO."""


class Lowered(NamedTuple):
    """A step in the compiler's input language."""

    lowered: Any
    stablehlo: str
    work: Work
    untouched: int | None
    """Bytes of arguments and results that a device need not read or write; None if that cannot be read."""
    state: int | None
    """Bytes of all that the step returns; None if that cannot be read."""
    seconds: float


class Answers:
    """Writes answers to a file descriptor, which the processes that the user's program starts do not inherit."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self.descriptor = descriptor

    def write(self, answer: Mapping[str, Any]) -> None:
        """Write one line."""
        line = memoryview(json.dumps(answer).encode() + b"\n")
        while line:
            line = line[os.write(self.descriptor, line) :]

    def begin(self, phase: str) -> None:
        """Announce a phase: import, trace, lower or compile."""
        self.write({"phase": phase})


def run(request: Mapping[str, Any], answers: Answers) -> dict[str, Any]:
    """Return the result for a request."""
    answers.begin("import")
    jax_version, libtpu_version = check_packages()
    opened = OpenedFiles(request["folder"])
    settings = _compiler_settings()
    # Before libtpu is initialized, as in a real run: a program may set its variables when it is imported.
    load = load_maxtext if is_maxtext(request["step"]) else load_function
    function = load(request["step"])
    configure_jax()
    place = request["slice"]
    devices = slice_devices(place["name"], place["options"], place["devices"])
    # Before the program can set a mesh for everything that is compiled after it.
    available = available_hbm(devices[0])
    answers.begin("trace")
    step = call_function(function, devices, request["flags"])
    changed = {name: value for name, value in _compiler_settings().items() if value != settings[name]}
    lowered = lower(step, devices, answers, changed)
    versions = {"jax": jax_version, "libtpu": libtpu_version}
    result = {
        **versions,
        "python": platform.python_version(),
        "files": list(dict.fromkeys((*imported_files(request["folder"]), *opened.stop()))),
        "stablehlo": lowered.stablehlo,
        "known": {**versions, "stablehlo": lowered.stablehlo} in request["known"],
    }
    if result["known"]:
        return result
    answers.begin("compile")
    return {**result, **compile_lowered(lowered, devices, available)}


def _compiler_settings() -> dict[str, str]:
    """Return the settings of the compiler that a program can change, and that are no part of its StableHLO."""
    import jax

    efforts = {name: str(getattr(jax.config, name, "")) for name in _EFFORTS}
    return {name: os.environ.get(name, "") for name in _FLAG_VARIABLES} | efforts


def configure_jax() -> None:
    """Undo settings of the user's program that are for a machine with TPUs."""
    import jax

    # There is no TPU for the arrays that a program creates while it describes its step.
    jax.config.update("jax_platforms", "cpu")
    # A program that is compiled without a TPU cannot be read back, and the cache may be one that a team shares.
    jax.config.update("jax_enable_compilation_cache", False)


def lower(step: Step, devices: Sequence[Any], answers: Answers, changed: Mapping[str, str]) -> Lowered:
    """Trace and lower the step; its hash covers all that the compiler gets from the program.

    `changed` has the settings of the compiler that the program has changed itself. They are no part of the StableHLO,
    and change the memory of a step and the limit for it.
    """
    import jax

    start = time.monotonic()
    traced = _in_program(lambda: step.jitted.trace(*step.args, **step.kwargs))
    # nnx.jit of Flax wraps what jax.jit returns, and hides its jaxpr.
    traced = getattr(traced, "traced", traced)
    # What cannot be read of a program, as another JAX may trace it, costs that figure and not the others.
    work = _read(lambda: count_work(traced.jaxpr), Work(uncounted=frozenset(("all FLOPs",))))
    answers.begin("lower")
    # Without a default device, a step whose arguments have no shardings would be compiled for the CPU.
    with jax.default_device(devices[0]):
        lowered = _in_program(traced.lower)
    text = lowered.as_text()
    _check_device_count(text, len(devices))
    settings = repr(sorted(changed.items())) if changed else ""
    digest = hashlib.sha256((text + _compiler_options(lowered) + settings).encode()).hexdigest()
    untouched = _read(lambda: _untouched(traced.jaxpr.jaxpr, step, lowered), None)
    if untouched is None:
        work = work.plus(Work(uncounted=frozenset(("the traffic with the memory",))))
    state = _read(lambda: result_bytes(traced.jaxpr.jaxpr), None)
    return Lowered(lowered, digest, work, untouched, state, time.monotonic() - start)


def _read(reader: Callable[[], _Figure], unread: _Figure) -> _Figure:
    try:
        return reader()
    except Exception:  # noqa: BLE001 - a program may contain anything
        return unread


def _untouched(jaxpr: Any, step: Step, lowered: Any) -> int:
    import jax

    leaves = jax.tree.leaves((step.args, step.kwargs))
    donated = [info.donated for info in jax.tree.leaves(lowered.args_info)]
    if not len(leaves) == len(donated) == len(jaxpr.invars):  # a static argument, or the wrapper of another library
        return 0
    return untouched_bytes(jaxpr, [Argument(device_bytes(leaf), each) for leaf, each in zip(leaves, donated)])  # noqa: B905


def _compiler_options(lowered: Any) -> str:
    """Return the `compiler_options` of the jitted function, which are no part of its StableHLO; empty without any.

    No public name of them is known; this one is that of jax 0.7 to 0.12.
    """
    options = getattr(getattr(lowered, "_lowering", None), "_compiler_options_kvs", ())
    return repr(sorted(options, key=repr)) if options else ""


def _in_program(call: Callable[[], Any]) -> Any:
    """Return the value of a call that runs the user's program."""
    try:
        return call()
    except BaseException as error:  # noqa: BLE001 - a program may call sys.exit, or raise anything
        raise StepError("step-failed", describe(error), error) from None


def _check_device_count(stablehlo: str, count: int) -> None:
    """Raise an error for a step that uses only some of the devices."""
    head = stablehlo[: stablehlo.find("\n")]
    sizes = re.findall(r"mhlo\.num_(?:partitions|replicas) = ([0-9]+)", head)
    used = 1
    for size in sizes:
        used *= int(size)
    if sizes and used != count:
        raise StepError(
            "wrong-return",
            f"the step runs on {used} of the slice's {count} devices; give its arguments shardings over all devices "
            "that the function is given",
        )


def compile_lowered(lowered: Lowered, devices: Sequence[Any], available: int) -> dict[str, Any]:
    """Compile the step, and return the part of the result that only the compiler knows."""
    import jax

    start = time.monotonic()
    try:
        compiled = lowered.lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        refusal = parse_refusal(str(error))
        if refusal is None:
            raise StepError("refused", describe(error), error) from None
        figures = _refused(refusal)
    except Exception as error:  # noqa: BLE001 - the compiler's Python part raises several types
        raise StepError("refused", describe(error), error) from None
    else:
        figures = _accepted(compiled, available, devices, lowered.untouched)
    uncounted = {*lowered.work.uncounted, *figures.pop("uncounted")}
    return {
        **figures,
        "flops": lowered.work.flops,
        "flops_8bit": lowered.work.flops_8bit,
        "uncounted": sorted(uncounted),
        "state_bytes": lowered.state,
        "seconds": {"lower": round(lowered.seconds, 3), "compile": round(time.monotonic() - start, 3)},
    }


def _refused(refusal: Refusal) -> dict[str, Any]:
    """Return the figures of a step that needs too much memory."""
    hbm = {"used": refusal.used, "available": refusal.available, "exact": False}
    return {"fits": False, "hbm": hbm, "hbm_bytes": None, "ici_bytes": None, "uncounted": ()}


def _accepted(compiled: Any, available: int, devices: Sequence[Any], untouched: int | None) -> dict[str, Any]:
    """Return the figures of a compiled step."""
    memory = compiled.memory_analysis()
    used = _used_hbm(memory)
    traffic = collective_bytes(compiled.as_text(), _chips(compiled, devices))
    moved = memory.argument_size_in_bytes + memory.output_size_in_bytes
    return {
        "fits": True,
        # The limit is known to two decimals of a GiB, and a step that was accepted is not above it.
        "hbm": {"used": used, "available": max(available, used), "exact": True},
        "hbm_bytes": None if untouched is None else max(0, moved - untouched),
        "ici_bytes": traffic.ici,
        "uncounted": traffic.uncounted,
    }


def _used_hbm(memory: Any) -> int:
    """Return the memory of a device that a compiled step needs at its peak.

    The peak is what the compiler compares with its limit: for v5e, whose limit is 15.75 GiB, it accepted programs with
    a peak up to 15.747 GiB, and refused them from 15.749 GiB on. The sum of arguments, outputs and temporaries without
    the aliases, which other tools use, is up to 46% higher.

    The peak includes arrays in the host's memory, of which the arguments and outputs are there all the time; for
    temporaries of the host, that sum is the better bound.
    """
    on_host = memory.host_argument_size_in_bytes + memory.host_output_size_in_bytes - memory.host_alias_size_in_bytes
    peak = memory.peak_memory_in_bytes - on_host
    if not on_host and not memory.host_temp_size_in_bytes:
        return int(peak)
    total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return int(min(peak, total - memory.alias_size_in_bytes))


def _chips(compiled: Any, devices: Sequence[Any]) -> list[int]:
    """Return the chip of each partition of the program, in the first slice.

    A partition's number is the position of its device in the mesh of the step.
    """
    import jax

    ordered = devices
    for sharding in jax.tree.leaves(compiled.input_shardings):
        mesh = getattr(sharding, "mesh", None)
        if mesh is not None and getattr(mesh, "size", 0) == len(devices):
            ordered = list(mesh.devices.flat)
            break
    first = min(getattr(device, "slice_index", 0) or 0 for device in ordered)
    own = [device for device in ordered if (getattr(device, "slice_index", 0) or 0) == first]
    chips: dict[Any, int] = {}
    return [chips.setdefault(tuple(device.coords), len(chips)) for device in own]


def main() -> None:
    """Read the request, and write the answers."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    answers = Answers(int(sys.argv[1]))
    request = json.load(sys.stdin)
    _give_way_to(request["folder"])
    try:
        answers.write({"result": run(request, answers)})
    except StepError as error:
        answers.write({"error": error.payload(request["folder"])})
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the program may have replaced it
            stream.flush()
    # Not a return: a thread of the user's program could keep the process alive, or the compiler crash at its end.
    os._exit(0)


def _end_with_parent(parent: int) -> None:
    """End this process, and what it has started, when tpucfg was killed and cannot do it: the program may never end."""
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _give_way_to(folder: str) -> None:
    """Let the user's program find its own modules first, also those with the names of this program's modules."""
    own = sys.path[0]
    sys.path[0] = folder
    sys.argv[1:] = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "__main__" and file and os.path.dirname(os.path.abspath(file)) == os.path.abspath(own):
            del sys.modules[name]


if __name__ == "__main__":
    main()
