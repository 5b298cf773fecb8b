"""Compilations that fail: each is a finding at its place in the spec, and leaves no process behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from false_python import Folder
from process import COMMAND, ENVIRONMENT, default_signals
from tpucfg.fit import worker_process
from tpucfg.fit.worker_process import Limits, run_tasks

pytestmark = pytest.mark.shell

ENDS = 'answer(phase="trace"); answer(result=known(RESULT))'
ONE = ("--size", "v5litepod-16")
SILENT: dict[str, Any] = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
HANG_SECONDS = 300
"""Half of what the processes would sleep: a busy machine is slow, and not this slow."""


def wait_for_file(path: Path, command: "subprocess.Popen[Any]") -> None:
    """Wait until a file is there that a process of a running command writes."""
    while not path.exists():
        time.sleep(0.05)
        assert command.poll() is None


def is_alive(pid: int) -> bool:
    """Return True if a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # it may disappear while the file is read
        return False


def wait_for_end(*pids: int) -> None:
    """Wait until no process runs: the kernel needs a moment to end one after SIGKILL."""
    deadline = time.monotonic() + 30
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def error(**values: Any) -> str:
    """Return the lines of a false Python that reports an error."""
    return f"answer(error={{'kind': 'step-failed', 'message': 'ValueError: no', 'frames': []}} | {values!r})"


FRAMES = [
    {"file": "step.py", "line": 12, "name": "abstract_step", "code": "raise ValueError('no')"}
]


@pytest.mark.parametrize(
    ("behavior", "location", "id_", "words"),
    [
        (
            error(kind="no-jax", message="ModuleNotFoundError: No module named 'jax'"),
            "9:45",
            "TPU114",
            "./python -m pip install 'jax[tpu]'",
        ),
        (
            error(kind="no-jax", message="RuntimeError: jaxlib is old"),
            "9:45",
            "TPU114",
            "--upgrade 'jax[tpu]'",
        ),
        (
            error(kind="old-jax", message="jax 0.6.2 is too old"),
            "9:45",
            "TPU114",
            "--upgrade 'jax[tpu]'",
        ),
        (
            error(kind="no-libtpu", message="libtpu is not installed"),
            "9:45",
            "TPU114",
            "'jax[tpu]'",
        ),
        (
            error(
                message="TypeError: abstract_step() takes 1 positional argument but 2 were given"
            ),
            "9:15",
            "TPU117",
            "help: define abstract_step(devices, flags) in step: it is called with the list of the slice's devices",
        ),
        (
            error(kind="no-module", message="No module named 'step'"),
            "9:15",
            "TPU116",
            "create step.py",
        ),
        (
            error(
                kind="import-failed", message="ModuleNotFoundError: No module named 'flax.linen'"
            ),
            "9:15",
            "TPU116",
            "./python -m pip install flax,",
        ),
        (
            error(kind="no-function", message="`f` does not exist"),
            "9:15",
            "TPU116",
            "step:abstract_step",
        ),
        (
            error(frames=FRAMES),
            "9:15",
            "TPU117",
            "step.py:12 in abstract_step: raise ValueError('no')",
        ),
        (
            error(frames=FRAMES),
            "9:15",
            "TPU117",
            "help: correct the value that step.py:12 refuses, or that line, and run: ",
        ),
        (
            error(kind="wrong-return", message="it returned None"),
            "9:15",
            "TPU117",
            "return (jitted, args)",
        ),
        (
            error(kind="refused", message="INTERNAL: Mosaic failed"),
            "9:15",
            "TPU119",
            "INTERNAL: Mosaic failed",
        ),
        (
            error(kind="no-topology", message="v5e:4x4 is not known"),
            "4:9",
            "TPU063",
            "set overrides.v5litepod-16.trainer.fit to null",
        ),
        ("sys.exit(3)", "9:15", "TPU118", "ended with exit status 3, before it gave a result"),
        ("print('the reason'); sys.exit()", "9:15", "TPU118", "| the reason"),
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "9:15",
            "TPU118",
            "signal 11 (Segmentation fault)",
        ),
        ("os.kill(os.getpid(), signal.SIGKILL)", "9:15", "TPU118", "--jobs 1"),
        ("os.write(DESCRIPTOR, b'{\\n')", "9:15", "TPU118", "an answer that cannot be read: {"),
        ("os.write(DESCRIPTOR, b'\\xff\\x00\\n')", "9:15", "TPU118", "cannot be read"),
        ("os.write(DESCRIPTOR, b'[' * 100_000 + b'\\n')", "9:15", "TPU118", "cannot be read"),
        ("os.write(DESCRIPTOR, b'x' * 20_000_000)", "9:15", "TPU118", "more than 16,777,216 bytes"),
        (f"{ENDS}; {ENDS}", "9:15", "TPU118", "an answer after the last one"),
        ("answer(result=RESULT | {'spy': 1})", "9:15", "TPU118", "cannot be read"),
        ("answer(result=RESULT | {'jax': '0.1\\n'})", "9:15", "TPU118", "cannot be read"),
        (
            "RESULT['fits'] = False; answer(result=RESULT)",
            "9:15",
            "TPU118",
            "it does not fit, and needs 7,516,192,768",
        ),
        ("answer(result=RESULT | {'flops': -1})", "9:15", "TPU118", "cannot be read"),
        ("answer(result=RESULT | {'flops': 1e400})", "9:15", "TPU118", "cannot be read"),
        ("answer(result=RESULT, phase='compile')", "9:15", "TPU118", "cannot be read"),
        (
            "REQUEST['known'] = [{key: RESULT[key] for key in ('jax', 'libtpu', 'stablehlo')}]; "
            + ENDS,
            "9:15",
            "TPU118",
            "a known step that was never compiled",
        ),
    ],
)
def test_a_failure_is_a_finding(
    folder: Folder, behavior: str, location: str, id_: str, words: str
) -> None:
    """The finding is at the setting at fault, with the reason and the command or edit that helps."""
    folder.python(behavior)
    status, out, err = folder.fit(*ONE)
    assert status == 1
    assert f"tpucfg.yaml:{location}: error[{id_}]: " in err
    assert words in err
    assert out == ""
    assert not (folder.path / "results").exists()


def test_a_module_named_from_its_own_folder_is_found(folder: Folder) -> None:
    """`step:abstract_step` is what a shell in trainer/ would import; a new file there would be another step."""
    (folder.path / "trainer").mkdir()
    (folder.path / "trainer" / "step.py").write_text("")
    folder.python(error(kind="no-module", message="ModuleNotFoundError: No module named 'step'"))
    _, _, err = folder.fit(*ONE)
    assert "help: set trainer.fit.step to trainer.step:abstract_step, or create step.py with" in err


@pytest.mark.parametrize("kind", ["import-failed", "step-failed"])
def test_a_program_that_reads_a_secret_is_named_as_such(folder: Folder, kind: str) -> None:
    """A variable of trainer.secrets has no value in a compilation, and no correction of that line gives it one."""
    folder.spec(("  fit: ", "  secrets: {WANDB_API_KEY: wandb/1}\n  fit: "))
    folder.python(error(kind=kind, message="KeyError: 'WANDB_API_KEY'", frames=FRAMES))
    _, _, err = folder.fit(*ONE)
    assert (
        "help: read WANDB_API_KEY in step.py:12 only where the job trains, as tpucfg fit has no secrets"
        in err
    )


def test_one_mistake_is_one_finding(folder: Folder) -> None:
    """Rungs with the same mistake share a finding, although its text has other shapes; others are kept."""
    folder.spec(("[v5litepod-16, v5litepod-64]", "[v5litepod-16, v5litepod-64, v5litepod-256]"))
    folder.python(
        "size = REQUEST['slice']['devices']\n"
        f"if size == 64: {ENDS}; sys.exit()\n"
        "answer(error={'kind': 'step-failed', 'message': f'ValueError: {size} does not divide 7', 'frames': []})"
    )
    status, _, err = folder.fit()
    assert status == 1
    assert err.count("error[TPU117]") == 1
    assert "not compiled: dev v5litepod-16, dev v5litepod-256" in err
    assert [row["size"] for row in folder.file()] == ["v5litepod-64"]


def test_a_failure_of_the_python_is_not_repeated(folder: Folder) -> None:
    """A Python without JAX is started once, and not for each rung."""
    folder.python(f"open('runs', 'a').write('x'); {error(kind='no-jax', message='No module')}")
    status, _, err = folder.fit("--jobs", "1")
    assert status == 1
    assert (folder.path / "runs").read_text() == "x"
    assert "not compiled: dev v5litepod-16, dev v5litepod-64" in err


def test_a_step_name_gets_the_nearest_module_and_function(folder: Folder) -> None:
    """The corrected value of trainer.fit.step is printed in full."""
    (folder.path / "trainer").mkdir()
    (folder.path / "trainer" / "fit.py").write_text(
        "def abstract_step(devices, flags): ...\ndef _own(): ...\n"
    )
    folder.spec(("step:abstract_step", "trainer.fits:abstract_step"))
    folder.python(error(kind="no-module", message="No module named 'trainer.fits'"))
    assert (
        "set trainer.fit.step to trainer.fit:abstract_step, or create trainer/fits.py"
        in folder.fit(*ONE)[2]
    )
    folder.spec(("step:abstract_step", "trainer.fit:abstract_steps"))
    folder.python(
        error(kind="no-function", message="`abstract_steps` does not exist in module `trainer.fit`")
    )
    assert (
        "set trainer.fit.step to trainer.fit:abstract_step, or define abstract_steps"
        in folder.fit(*ONE)[2]
    )


def test_a_module_that_python_takes_from_elsewhere_is_named(folder: Folder) -> None:
    """A file that has the function was not imported: its name is taken, as `token` is by Python itself."""
    (folder.path / "token.py").write_text("def abstract_step(devices, flags): ...\n")
    folder.spec(("step:abstract_step", "token:abstract_step"))
    folder.python(
        error(kind="no-function", message="`abstract_step` does not exist in module `token`")
    )
    err = folder.fit(*ONE)[2]
    assert "token is another module than token.py, such as one of Python's own" in err
    assert "help: rename token.py, and set trainer.fit.step to its new name" in err


@pytest.mark.parametrize(
    ("flags", "printed", "location", "words"),
    [
        (
            "  xla_flags: {v5e: [--xla_a=1, --xla_fusionn=true]}\n",
            "Unknown command line flag 'xla_fusionn'. Did you mean: xla_fusion ?",
            "9:32",
            "help: write --xla_fusion=true, or delete --xla_fusionn=true from trainer.xla_flags.v5e",
        ),
        (
            "  xla_flags: {v5e: [--xla_zzz]}\n",
            "Unknown command line flag 'xla_zzz'",
            "9:21",
            "delete --xla_zzz from",
        ),
        (
            "  xla_flags: {v5e: [--xla_a=maybe]}\n",
            "Illegal value 'maybe' specified for flag 'xla_a'",
            "9:21",
            "give the flag another value",
        ),
        (
            "  env: {LIBTPU_INIT_ARGS: '--xla_a=1 --xla_b=2'}\n",
            "Unknown command line flag 'xla_b'",
            "9:38",
            "delete --xla_b=2 from trainer.env.LIBTPU_INIT_ARGS",
        ),
        (
            "  xla_flags: {v5e: [--xla_dump_hlo_as_text]}\n",
            "Unknown command line flag 'xla_dump_hlo_as_text'. Did you mean: xla_tpu_dump ?",
            "9:21",
            "help: move --xla_dump_hlo_as_text to trainer.env.XLA_FLAGS, which XLA on the host reads, or delete",
        ),
        (
            "  env: {XLA_FLAGS: '--xla_a --xla_nope=3'}\n",
            "F1122 19:47:25.803236 13810 parse_flags_from_env.cc:234] Unknown flag in XLA_FLAGS: --xla_nope=3",
            "9:29",
            "error[TPU112]: XLA does not know the flag xla_nope",
        ),
        (
            "  env: {XLA_FLAGS: '--xla_a --xla_nope=3'}\n",
            "F1122 19:47:25.803236 13810 parse_flags_from_env.cc:234] Unknown flags in XLA_FLAGS: --xla_nope=3 --spy",
            "9:29",
            "help: delete --xla_nope=3 from trainer.env.XLA_FLAGS",
        ),
        (
            "  env: {XLA_FLAGS: --xla_a=maybe}\n",
            "E1122 19:47:41.262079 13942 command_line_flags.cc:93] Couldn't interpret value maybe for flag xla_a.",
            "9:20",
            "XLA refuses --xla_a=maybe: couldn't interpret value maybe for flag xla_a",
        ),
    ],
)
def test_an_unknown_xla_flag_is_found_at_its_line(
    folder: Folder, flags: str, printed: str, location: str, words: str
) -> None:
    """The compiler ends the process with a message about the flag, which names the nearest one that it knows."""
    folder.spec(("  fit:", f"{flags}  fit:"))
    printed = printed if "]" in printed else f"ERROR: {printed}"
    folder.python(f"print('noise'); print({printed!r}); sys.exit(1)")
    status, _, err = folder.fit("--jobs", "1")
    assert status == 1
    assert f"tpucfg.yaml:{location}: error[TPU112]" in err
    assert words in err
    assert err.count("error[") == 1
    assert "dev v5litepod-16, dev v5litepod-64" in err


def test_a_flag_that_a_generation_does_not_take_is_found_at_its_line(folder: Folder) -> None:
    """The compiler knows the flag, and names it when it refuses the program; libtpu 0.0.50 printed this on v6e."""
    folder.spec(("  fit:", "  xla_flags: {v5e: [--xla_a=1, --xla_tpu_fusion=true]}\n  fit:"))
    refusal = "Fusion for AllGather is not supported on platforms other than TPU v5e. Please use xla_tpu_fusion=false"
    folder.python(error(kind="refused", message=f"JaxRuntimeError: FAILED_PRECONDITION: {refusal}"))
    _, _, err = folder.fit(*ONE)
    assert (
        "tpucfg.yaml:9:32: error[TPU112]: the TPU compiler refuses --xla_tpu_fusion=true: fusion for AllGather"
        in err
    )
    assert "the program would end at its first step: the TPU runtime has the same compiler" in err
    assert "or delete --xla_tpu_fusion=true from trainer.xla_flags.v5e" in err


def test_a_flag_that_the_job_does_not_have_is_no_finding(folder: Folder) -> None:
    """The program may print anything: only a flag of the job can be unknown."""
    folder.python("print(\"ERROR: Unknown command line flag 'xla_x'\"); sys.exit(1)")
    assert "error[TPU118]" in folder.fit(*ONE)[2]


def test_output_is_shown_in_part_and_escaped(folder: Folder) -> None:
    """Megabytes of output cost no memory, and its last lines reach the terminal without control characters."""
    folder.python(
        """
        print('x' * 20_000_000)
        print('\\x1b[31mlast \\u202e line')
        print('ya29.' + 'a' * 40)
        sys.exit(1)
        """
    )
    _, _, err = folder.fit(*ONE)
    assert "| \\u001b[31mlast \\u202e line" in err
    assert "ya29" not in err
    assert len(err) < 5000
    folder.python(f"print('x' * 20_000_000); {ENDS}")
    status, out, err = folder.fit(*ONE)
    assert status == 0
    assert "xxx" not in out + err


def test_a_message_is_escaped(folder: Folder) -> None:
    """Neither a message nor a frame can move the cursor."""
    folder.python(error(message="\x1b[2J\u202e", frames=[FRAMES[0] | {"code": "\x1b[1m"}]))
    assert "\x1b" not in folder.fit(*ONE, "--format", "markdown")[2]


def test_no_lines_are_promised_of_a_process_that_printed_none(folder: Folder) -> None:
    """The help refers to the last lines only if there are some."""
    folder.python("sys.exit(3)")
    assert "help: it printed nothing; run it again with: tpucfg fit" in folder.fit(*ONE)[2]
    folder.python("print('reason', flush=True); sys.exit(3)")
    assert (
        "help: the last lines that it printed are above; run it again with: tpucfg fit"
        in folder.fit(*ONE)[2]
    )


def test_a_hang_ends_at_the_time_limit(folder: Folder) -> None:
    """The process is ended with all that it has started, also what left its group and its session."""
    (folder.path / "pids").mkdir()
    folder.python(
        """
        for number, session in enumerate((False, True)):
            child = subprocess.Popen(["sleep", "600"], start_new_session=session)
            open(f"pids/{number}", "w").write(str(child.pid))
        answer(phase="compile")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
        """
    )
    start = time.monotonic()
    status, _, err = folder.fit(*ONE, "--time-limit", "5s")
    assert status == 1
    assert time.monotonic() - start < HANG_SECONDS
    assert "was stopped after 5 seconds, while the TPU compiler ran" in err
    assert "--time-limit 2m" in err
    pids = [int(path.read_text()) for path in (folder.path / "pids").iterdir()]
    assert len(pids) == 2
    wait_for_end(*pids)


def test_a_child_that_outlives_its_parent_is_ended(folder: Folder) -> None:
    """A daemon that keeps the pipes open neither delays the result nor stays."""
    folder.python(
        f"""
        child = subprocess.Popen(["sleep", "600"], start_new_session=True, pass_fds=(DESCRIPTOR,))
        open("pid", "w").write(str(child.pid))
        {ENDS}
        """
    )
    start = time.monotonic()
    assert folder.fit(*ONE)[0] == 0
    assert time.monotonic() - start < HANG_SECONDS
    wait_for_end(int((folder.path / "pid").read_text()))


@pytest.mark.parametrize(
    ("behavior", "status", "words"),
    [
        ("os.close(DESCRIPTOR); time.sleep(600)", 1, "closed its answers and gave no result"),
        (f"{ENDS}; time.sleep(600)", 0, "7 of 15 GiB"),
        (f"{ENDS}; os.kill(os.getpid(), signal.SIGABRT)", 0, "7 of 15 GiB"),
    ],
)
def test_a_process_that_does_not_end(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, behavior: str, status: int, words: str
) -> None:
    """After the last answer, or without a way to give one, a process has a moment to end; its result counts."""
    monkeypatch.setattr(worker_process, "_GRACE_SECONDS", 0.2)
    folder.python(behavior)
    actual, _, err = folder.fit(*ONE)
    assert actual == status
    assert words in err


def test_a_process_that_needs_too_much_memory_is_ended(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the machine runs out of memory, the compilation ends, and the others go on."""
    monkeypatch.setattr("tpucfg.cli.fit.available_memory", lambda: 150 << 20)
    folder.python(
        f"""
        if REQUEST["slice"]["devices"] == 16:
            block = b"x" * (200 << 20)
            time.sleep(600)
        {ENDS}
        """
    )
    status, _, err = folder.fit("--jobs", "1")
    assert status == 1
    assert "needed more memory than the machine had left" in err
    assert [row["size"] for row in folder.file()] == ["v5litepod-64"]


def test_the_kernel_ends_a_compilation_first(folder: Folder) -> None:
    """If memory runs out within a second, the kernel ends the compilation, and neither tpucfg nor another program."""
    folder.python(
        f"""
        # tpucfg sets it after the start of the process.
        deadline = time.monotonic() + 60
        while open("/proc/self/oom_score_adj").read() != "1000\\n":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        {ENDS}
        """
    )
    assert folder.fit(*ONE)[0] == 0


def test_compilations_that_need_too_much_together_run_alone(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that fit alone and not together are compiled one after the other."""
    monkeypatch.setattr("tpucfg.cli.fit.available_memory", lambda: 300 << 20)
    folder.python(f"block = b'x' * (180 << 20); time.sleep(2.5); {ENDS}")
    status, _, err = folder.fit("--jobs", "2")
    assert status == 0, err
    assert len(folder.file()) == 2


@pytest.mark.parametrize(
    ("system", "processor", "words"),
    [("Darwin", "arm64", "Darwin on arm64"), ("Linux", "aarch64", "Linux on aarch64")],
)
def test_another_machine_is_told(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, system: str, processor: str, words: str
) -> None:
    """The compiler has builds for Linux on x86-64 only."""
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: processor)
    status, _, err = folder.fit()
    assert status == 1
    assert (
        "tpucfg.yaml:9:3: error[TPU115]: no step can be compiled here: the TPU compiler runs on Linux"
        in err
    )
    assert words in err


def test_too_little_memory_for_one_is_told(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started on a machine that has no memory for a compilation."""
    monkeypatch.setattr("tpucfg.fit.machine.available_memory", lambda: 500 << 20)
    status, _, err = folder.fit()
    assert status == 1
    assert "error[TPU115]" in err
    assert "at least 1 GiB of memory, and this machine has 0.49 GiB left" in err


@pytest.mark.parametrize(
    ("python", "words"),
    [
        (".venv/bin/python", "does not exist in the spec's folder"),
        (".venv/bin/python", "python3 -m venv .venv && .venv/bin/python -m pip install 'jax[tpu]'"),
        ("no-such-python", "is not on the PATH"),
        ("./text", "is not an executable file"),
        ("./broken", "cannot be started: Exec format error"),
        ("/bin/true", "/bin/true is not a Python"),
        ("./old", "is Python 3.8, and a compilation needs 3.10 or newer"),
    ],
)
def test_a_python_that_is_none(folder: Folder, python: str, words: str) -> None:
    """A Python that is missing, broken or too old is a finding at trainer.fit.python."""
    for name, text in {
        "text": "",
        "broken": "",
        "old": "#!/bin/sh\n[ $1 = -c ] && echo 3.8 || exit 1\n",
    }.items():
        (folder.path / name).write_text(text)
        (folder.path / name).chmod(0o644 if name == "text" else 0o755)
    folder.spec(("./python", python))
    status, _, err = folder.fit()
    assert status == 1
    assert "tpucfg.yaml:9:45: error[TPU114]" in err
    assert words in err
    assert err.count("error[") == 1


def test_a_missing_environment_gets_the_requirements_of_the_step(folder: Folder) -> None:
    """The command installs all that the step imports, for a step in a package too."""
    (folder.path / "requirements.txt").write_text("optax==0.2.8\n")
    folder.spec(("./python", ".venv/bin/python"))
    assert ".venv/bin/python -m pip install 'jax[tpu]' -r requirements.txt\n" in folder.fit()[2]
    folder.spec(
        ("./python", ".venv/bin/python"), ("step:abstract_step", "trainer.fit:abstract_step")
    )
    assert ".venv/bin/python -m pip install 'jax[tpu]'\n" in folder.fit()[2]
    (folder.path / "trainer").mkdir()
    (folder.path / "trainer/requirements.txt").write_text("optax==0.2.8\n")
    assert (
        ".venv/bin/python -m pip install 'jax[tpu]' -r trainer/requirements.txt\n"
        in folder.fit()[2]
    )


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_is_complete(folder: Folder, number: int, held: bool) -> None:
    """Ctrl-C, also held, ends all processes; the rungs that are complete are kept, and nothing is half-written."""
    folder.python(
        f"""
        if REQUEST["slice"]["devices"] == 16:
            {ENDS}
            sys.exit()
        open("pid.new", "w").write(str(os.getpid()))
        os.rename("pid.new", "pid")
        time.sleep(600)
        """
    )
    with default_signals():
        command = subprocess.Popen(
            [*COMMAND, "fit", "--jobs", "1"],
            env=ENVIRONMENT,
            cwd=folder.path,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
    wait_for_file(folder.path / "pid", command)
    command.send_signal(number)
    while held and command.poll() is None:
        command.send_signal(number)
        time.sleep(0.0002)
    _, err = command.communicate(timeout=60)
    if not held:  # else a signal may arrive while the interpreter ends
        assert command.returncode == 130, err
        assert "Traceback" not in err
        assert err.splitlines()[-1] == (
            "interrupted: 1 of 2 rungs compiled; kept in results/fit.json; run the command again without --fresh: a "
            "step that is kept takes seconds"
        )
    assert [row["size"] for row in folder.file()] == ["v5litepod-16"]
    assert [path.name for path in (folder.path / "results").iterdir()] == ["fit.json"]
    wait_for_end(int((folder.path / "pid").read_text()))


def test_a_signal_that_the_caller_ignores_does_not_end_the_command(folder: Folder) -> None:
    """A command that nohup has started survives the end of its terminal."""
    folder.python(
        f"""
        os.kill(os.getppid(), signal.SIGHUP)
        time.sleep(0.3)
        {ENDS}
        """
    )
    command = ["nohup", *COMMAND, "fit", *ONE]
    done = subprocess.run(
        command,
        env=ENVIRONMENT,
        cwd=folder.path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [row["size"] for row in folder.file()] == ["v5litepod-16"]


def test_a_killed_command_leaves_no_process(folder: Folder) -> None:
    """SIGKILL leaves the command no moment to end its processes, so they end themselves."""
    (folder.path / "jax.py").write_text(
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        "open('pids.new', 'w').write(f'{os.getpid()} {child.pid}')\n"
        "os.rename('pids.new', 'pids')\n"
        "time.sleep(600)\n"
    )
    folder.spec(("./python", sys.executable))
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{folder.path}:{ENVIRONMENT['PYTHONPATH']}"}
    command = subprocess.Popen([*COMMAND, "fit", *ONE], env=environment, cwd=folder.path, **SILENT)
    wait_for_file(folder.path / "pids", command)
    command.kill()
    command.wait()
    wait_for_end(*map(int, (folder.path / "pids").read_text().split()))


def test_a_killed_command_keeps_what_was_complete(folder: Folder) -> None:
    """Each result is written when its rung ends, and not when the last one does."""
    folder.python(
        f"""
        if REQUEST["slice"]["devices"] == 16:
            {ENDS}
            sys.exit()
        open("second", "w")
        time.sleep(600)
        """
    )
    command = subprocess.Popen(
        [*COMMAND, "fit", "--jobs", "1"], env=ENVIRONMENT, cwd=folder.path, **SILENT
    )
    wait_for_file(folder.path / "second", command)
    command.kill()
    command.wait()
    assert [row["size"] for row in folder.file()] == ["v5litepod-16"]


def test_files_outside_the_folder_are_no_part_of_a_result(folder: Folder) -> None:
    """Neither a path that leaves the folder nor a link to the outside is hashed."""
    (folder.path / "link").symlink_to("/etc")
    files = [
        "../secret",
        "/etc/passwd",
        "a/../../b",
        "link/hostname",
        "odd\nname",
        "missing.py",
        "step.py",
    ]
    folder.python(f"RESULT['files'] = {files!r}; {ENDS}")
    assert folder.fit(*ONE)[0] == 0
    assert folder.file()[0]["files"].keys() == {"step.py"}


def test_closing_the_iterator_of_tasks_needs_no_task() -> None:
    """A run without rungs ends at once."""
    assert list(run_tasks((), Limits(1, 1.0, 1), lambda _: None)) == []


def test_progress_at_a_terminal_is_one_line(folder: Folder) -> None:
    """At a terminal, the phases of running compilations are shown in a line that is erased."""
    folder.python(f"answer(phase='compile'); time.sleep(3); {ENDS}")
    ours, theirs = os.openpty()
    command = subprocess.Popen(
        [*COMMAND, "fit", *ONE],
        env=ENVIRONMENT,
        cwd=folder.path,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert command.wait(timeout=60) == 0
    assert b"0/1: dev v5litepod-16 compile" in text
    assert b"\r\x1b[K1/1 dev v5litepod-16: 7 of 15 GiB (" in text
