"""Compile one training step for one TPU slice: the program that `tpucfg fit` runs in the user's Python.

python -B compile_step.py FD            reads a request in JSON from stdin, and writes its answers to descriptor FD
python -B compile_step.py container S   does so in a child of a container's first process: the answers leave by stdout,
                                        what the program prints by stderr, and all of it ends after S seconds

An answer is one line of JSON: {"phase": name} when a phase begins, and {"result": ...} or {"error": ...} at the end.
Stdout and stderr belong to the user's program. Nothing of tpucfg is imported: the user's Python does not have it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import platform
import re
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from collectives import CHIPS, Network
from hlo_clock import schedule
from stablehlo_flops import count_work
from stablehlo_work import Work
from tpu_topology import (
    MemoryRefusal,
    available_hbm,
    check_packages,
    framework_version,
    parse_refusal,
    slice_devices,
)
from user_function import (
    JittedStep,
    OpenedFiles,
    StepError,
    call_function,
    describe,
    imported_files,
    load_function,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_Figure = TypeVar("_Figure")
_ANSWERS: Final = 3
"""The descriptor of the answers in a container."""
_SIGNALLED: Final = 128
"""Added to the number of a signal, as shells do."""
_PARENT_SECONDS: Final = 1.0
"""Interval of looking for the parent process."""
_FLAG_VARIABLES: Final = ("LIBTPU_INIT_ARGS", "XLA_FLAGS")
"""The variables with flags of the compiler, which a program can set before libtpu is initialized."""
_HOST_MEMORY: Final = "pinned_host"
"""The name of a host's memory in a program: runs with it are known that train although the compiler refuses them."""
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
    text: str
    stablehlo: str
    """The hash of the text, and of all else that the compiler gets."""
    seconds: float


class AnswerWriter:
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


def run(request: Mapping[str, Any], answers: AnswerWriter) -> dict[str, Any]:
    """Return the result for a request."""
    answers.begin("import")
    jax_version, libtpu_version = check_packages()
    opened = OpenedFiles(request["folder"])
    settings = _compiler_settings()
    # Before libtpu is initialized, as in a real run: a program may set its variables when it is imported.
    function = load_function(request["step"])
    configure_jax()
    place = request["slice"]
    devices = slice_devices(place["name"], place["options"], place["devices"])
    # Before the program can set a mesh for everything that is compiled after it.
    available = available_hbm(devices[0])
    answers.begin("trace")
    step = call_function(function, devices, request["flags"])
    changed = {
        name: value for name, value in _compiler_settings().items() if value != settings[name]
    }
    lowered = lower(step, devices, answers, changed)
    versions = {"jax": jax_version, "libtpu": libtpu_version, **framework_version()}
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
    return {**result, **compile_lowered(lowered, available, _network(place["name"]))}


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


def lower(
    step: JittedStep, devices: Sequence[Any], answers: AnswerWriter, changed: Mapping[str, str]
) -> Lowered:
    """Trace and lower the step; its hash covers all that the compiler gets from the program.

    `changed` has the settings of the compiler that the program has changed itself. They are no part of the StableHLO,
    and change the memory of a step and the limit for it.
    """
    import jax

    start = time.monotonic()
    traced = _in_program(lambda: step.jitted.trace(*step.args, **step.kwargs))
    # nnx.jit of Flax wraps what jax.jit returns, and hides the shapes of its results.
    traced = getattr(traced, "traced", traced)
    answers.begin("lower")
    # Without a default device, a step whose arguments have no shardings would be compiled for the CPU.
    with jax.default_device(devices[0]):
        lowered = _in_program(traced.lower)
    text = lowered.as_text()
    _check_device_count(text, len(devices))
    if empty := re.search(r"tensor<(?:[0-9]+x)*0x[^>]*>", text):
        message = f"the step has an array without elements, {empty[0]}, so it does not do the work of a real step"
        raise StepError(
            "wrong-return", f"{message}; give every dimension a size, such as that of the batch"
        )
    settings = repr(sorted(changed.items())) if changed else ""
    digest = hashlib.sha256((text + _compiler_options(lowered) + settings).encode()).hexdigest()
    return Lowered(lowered, text, digest, time.monotonic() - start)


def _or_default(reader: Callable[[], _Figure], default: _Figure) -> _Figure:
    """Return the reader's value; `default` if it fails, as on a program in the form of another JAX."""
    try:
        return reader()
    except Exception:  # noqa: BLE001 - a program may contain anything
        return default


def _state_bytes(lowered: Any) -> int:
    """Return the bytes of all that the step returns, of whole arrays."""
    import jax

    results = jax.tree.leaves(lowered.out_info)
    return sum(math.prod(each.shape) * each.dtype.itemsize for each in results)


def _network(topology: str) -> Network | None:
    """Return the links of the slice, by the name of its topology: `v5e:4x4`."""
    generation, _, axes = topology.partition(":")
    return (
        Network(CHIPS[generation], tuple(map(int, axes.split("x"))))
        if generation in CHIPS
        else None
    )


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
    sizes = [
        int(size) for size in re.findall(r"mhlo\.num_(?:partitions|replicas) = ([0-9]+)", head)
    ]
    used = math.prod(sizes)
    if sizes and used != count:
        raise StepError(
            "wrong-return",
            f"the step runs on {used} of the slice's {count} devices; give its arguments shardings over all devices "
            "that the function is given",
        )


def compile_lowered(lowered: Lowered, available: int, network: Network | None) -> dict[str, Any]:
    """Compile the step, and return the part of the result that only the compiler knows."""
    import jax

    start = time.monotonic()
    try:
        compiled = lowered.lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        refusal = parse_refusal(str(error))
        if refusal is None:
            raise StepError("refused", describe(error), error) from None
        figures = _refused(refusal, is_reliable=_HOST_MEMORY not in lowered.text)
    except Exception as error:  # noqa: BLE001 - the compiler's Python part raises several types
        raise StepError("refused", describe(error), error) from None
    else:
        figures = _accepted(compiled, available, network)
    work = _or_default(
        lambda: count_work(lowered.lowered.compiler_ir()), Work(uncounted=frozenset(("all FLOPs",)))
    )
    return {
        **figures,
        "flops": work.flops,
        "flops_8bit": work.flops_8bit,
        "uncounted": sorted(work.uncounted),
        "state_bytes": _or_default(lambda: _state_bytes(lowered.lowered), None),
        "seconds": {
            "lower": round(lowered.seconds, 3),
            "compile": round(time.monotonic() - start, 3),
        },
    }


def _refused(refusal: MemoryRefusal, *, is_reliable: bool) -> dict[str, Any]:
    """Return the figures of a step that needs too much memory."""
    hbm = {"used": refusal.used, "available": refusal.available, "exact": False}
    forecast = (
        None if is_reliable else {"seconds": 0, "parts": {}, "is_reliable": False, "uncounted": []}
    )
    return {"fits": False, "hbm": hbm, "forecast": forecast}


def _accepted(compiled: Any, available: int, network: Network | None) -> dict[str, Any]:
    """Return the figures of a compiled step."""
    used = _used_hbm(compiled.memory_analysis())
    return {
        "fits": True,
        # The limit is known to two decimals of a GiB, and a step that was accepted is not above it.
        "hbm": {"used": used, "available": max(available, used), "exact": True},
        "forecast": network
        and _or_default(lambda: schedule(compiled.as_text(), network).payload(), None),
    }


def _used_hbm(memory: Any) -> int:
    """Return the memory of a device that a compiled step needs at its peak.

    The peak is what the compiler compares with its limit: for v5e, whose limit is 15.75 GiB, it accepted programs with
    a peak up to 15.747 GiB, and refused them from 15.749 GiB on. The sum of arguments, outputs and temporaries without
    the aliases, which other tools use, is up to 46% higher.

    The peak includes arrays in the host's memory, of which the arguments and outputs are there all the time; for
    temporaries of the host, that sum is the better bound.
    """
    on_host = (
        memory.host_argument_size_in_bytes
        + memory.host_output_size_in_bytes
        - memory.host_alias_size_in_bytes
    )
    peak = memory.peak_memory_in_bytes - on_host
    if not on_host and not memory.host_temp_size_in_bytes:
        return int(peak)
    total = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    return int(min(peak, total - memory.alias_size_in_bytes))


def main(descriptor: int) -> None:
    """Read the request, and write the answers to a file descriptor."""
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    answers = AnswerWriter(descriptor)
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


def run_in_container(seconds: int) -> None:
    """Compile in a child, and exit with its status; after the seconds even if the tpucfg that started it is gone."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(_SIGNALLED + signal.SIGALRM))
    signal.alarm(seconds)
    child = os.fork()
    if not child:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.dup2(1, _ANSWERS)
        os.dup2(2, 1)
        main(_ANSWERS)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # The end of a container's first process ends all of it.
    os._exit(status if status >= 0 else _SIGNALLED - status)


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
        if (
            name != "__main__"
            and file
            and os.path.dirname(os.path.abspath(file)) == os.path.abspath(own)
        ):
            del sys.modules[name]


if __name__ == "__main__":
    if sys.argv[1] == "container":
        run_in_container(int(sys.argv[2]))
    main(int(sys.argv[1]))
