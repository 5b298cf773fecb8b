"""Exit of the stack program when Pulumi's Python host interrupts it.

The tests run the program in a script with the host's name, under mocks instead of an engine.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import specs

from tpucfg.stack.interrupt import HOST

pytestmark = pytest.mark.shell

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import signal
import sys
import time
from pathlib import Path

from tpucfg.infra.stack_program import run_under_mocks
from tpucfg.spec.parse import load_project

# A shell starts its background jobs, and what they start, with interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
spec = Path(sys.argv[1])
environment = load_project(spec)[0].environments["dev"]
config = {"tpucfg:spec": str(spec)}
run_under_mocks(Path(sys.argv[2]), environment=environment, project="tpucfg", config=config)
print("waiting for the engine", flush=True)
"""
WAIT = "time.sleep(60)\n"


def start_program(folder: Path, name: str, last_line: str) -> subprocess.Popen[str]:
    """Start a script that runs the stack program and then waits, or fails."""
    script = folder / name
    script.write_text(SCRIPT + last_line)
    spec = specs.write(folder, specs.spec())
    command = [sys.executable, str(script), str(spec), str(ROOT / "stacks")]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def interrupt(process: subprocess.Popen[str]) -> str:
    """Interrupt a program once it waits for the engine, and return its stderr."""
    assert process.stdout
    assert process.stdout.readline() == "waiting for the engine\n"
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    return messages


def test_interrupted_program_prints_no_traceback(tmp_path: Path) -> None:
    """Under Pulumi's Python host, an interrupt ends the program without output, with the status of an interrupt."""
    with start_program(tmp_path, HOST, WAIT) as process:
        assert interrupt(process) == ""


def test_interrupt_outside_the_host_is_unchanged(tmp_path: Path) -> None:
    """In any other process, running the program does not change the traceback of an interrupt."""
    with start_program(tmp_path, "other.py", WAIT) as process:
        assert "KeyboardInterrupt" in interrupt(process)


@pytest.mark.parametrize("name", [HOST, "other.py"])
def test_other_exceptions_keep_their_traceback(tmp_path: Path, name: str) -> None:
    """Only the traceback of an interrupt is hidden."""
    with start_program(tmp_path, name, "raise ValueError('a bug')\n") as process:
        _, messages = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "Traceback" in messages
    assert "ValueError: a bug" in messages
