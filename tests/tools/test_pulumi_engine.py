"""`tools/pulumi_engine.py` with stand-ins for `go` and `pulumi` on an otherwise empty PATH."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "pulumi_engine.py"
PINNED = "".join(re.findall(r"pulumi/pkg/v3 v([0-9.]+)", (SCRIPT.parent / "go.mod").read_text()))

GO = """
import pathlib, sys, time
if sys.argv[1:3] == ["mod", "download"]:
    print('{{"Dir": "{module}"}}')
if sys.argv[1] == "mod":
    sys.exit()
pathlib.Path({runs!r}).open("a").write("run\\n")
time.sleep({seconds})
print("compiling something")
if {fails}:
    sys.exit("cannot find module")
out = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
out.write_text("#!{python}\\nprint('v{version}')\\n")
out.chmod(0o755)
"""


class Machine:
    """A PATH and a cache with the contents that a test adds."""

    def __init__(self, folder: Path) -> None:
        self.path, self.cache, self.runs = folder / "bin", folder / "cache", folder / "runs"
        self.path.mkdir()
        self.engine = self.cache / f"pulumi-{PINNED}" / "pulumi"

    def program(self, name: str, source: str) -> Path:
        """Add a Python program to the PATH."""
        program = self.path / name
        program.write_text(f"#!{sys.executable}\n{source}")
        program.chmod(0o755)
        return program

    def go(self, *, seconds: float = 0.0, fails: bool = False, version: str = PINNED) -> None:
        """Add a `go` to the PATH that builds an engine of some version, or fails, and a `git`."""
        values = {
            "runs": str(self.runs),
            "python": sys.executable,
            "seconds": seconds,
            "fails": fails,
            "module": str(self.path),
        }
        self.program("git", "")
        self.program("go", GO.format(**values, version=version))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the script."""
        environment = {"PATH": str(self.path), "TPUCFG_TOOLS_CACHE": str(self.cache)}
        command = [sys.executable, str(SCRIPT), *arguments]
        return subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Start the script, and return its status, output and messages."""
        with self.start(*arguments) as process:
            output, messages = process.communicate(timeout=60)
            return process.returncode, output, messages


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine without `pulumi`, `go` and cache."""
    return Machine(tmp_path)


@pytest.mark.parametrize("version", [PINNED, "3.1000.0", "4.0.0"])
def test_new_enough_engine_on_the_path_is_used(machine: Machine, version: str) -> None:
    """An installed Pulumi of the pinned version or a newer one is used, and nothing is built."""
    installed = machine.program("pulumi", f"print('v{version}')")

    assert machine.run() == (0, f"{installed}\n", "")


@pytest.mark.parametrize("version_output", ["v3.30.9", "v2.1000.0", "something else"])
def test_old_engine_on_the_path_is_ignored(machine: Machine, version_output: str) -> None:
    """An older Pulumi, or one without a version, is not used: the pinned one is built into the cache."""
    machine.program("pulumi", f"print({version_output!r})")
    machine.go()

    status, output, _ = machine.run()

    assert (status, output) == (0, f"{machine.engine}\n")


def test_second_run_builds_nothing(machine: Machine) -> None:
    """The cached engine is used, with `--find` too."""
    machine.go()
    machine.run()

    assert machine.run() == (0, f"{machine.engine}\n", "")
    assert machine.run("--find") == (0, f"{machine.engine}\n", "")
    assert machine.runs.read_text() == "run\n"


@pytest.mark.slow
def test_concurrent_callers_build_once(machine: Machine) -> None:
    """The second caller prints that it waits, and both return the same engine."""
    machine.go(seconds=1.5)

    with machine.start() as first, machine.start() as second:
        results = [first.communicate(timeout=60), second.communicate(timeout=60)]

    assert [output for output, _ in results] == [f"{machine.engine}\n"] * 2
    assert sum("waiting for it" in messages for _, messages in results) == 1
    assert machine.runs.read_text() == "run\n"


def test_find_builds_nothing(machine: Machine) -> None:
    """With `--find`, a missing engine is an error with the command that builds it."""
    machine.go()

    status, output, messages = machine.run("--find")

    assert (status, output) == (1, "")
    assert "python tools/pulumi_engine.py" in messages
    assert not machine.runs.exists()


def test_machine_without_pulumi_and_go_gets_the_urls(machine: Machine) -> None:
    """Without Pulumi and Go, the message has the URLs to install either of them."""
    status, output, messages = machine.run()

    assert (status, output) == (1, "")
    assert "https://www.pulumi.com/docs/install/" in messages
    assert "https://go.dev/doc/install" in messages
    assert "Traceback" not in messages


def test_failed_build_prints_its_last_lines_and_the_log(machine: Machine) -> None:
    """A failed build leaves no engine; the last lines and the path of its log are printed."""
    machine.go(fails=True)

    status, output, messages = machine.run()

    log = machine.engine.parent / "build.log"
    assert (status, output) == (1, "")
    assert "cannot find module" in messages
    assert str(log) in messages
    assert "compiling something" in log.read_text()
    assert not machine.engine.exists()


def test_engine_of_another_version_is_rejected(machine: Machine) -> None:
    """A build with another version than the pinned one is rejected."""
    machine.go(version="0.0.1")

    status, _, messages = machine.run()

    assert status == 1
    assert f"is not version {PINNED}" in messages
    assert not machine.engine.exists()


@pytest.mark.parametrize("left", ["pulumi.unfinished", ".lock"])
def test_interrupted_build_is_restarted(machine: Machine, left: str) -> None:
    """The files of an interrupted build neither block the next one nor are used as an engine."""
    machine.engine.parent.mkdir(parents=True)
    (machine.engine.parent / left).write_text("half")
    machine.go()

    status, output, _ = machine.run()

    assert (status, output) == (0, f"{machine.engine}\n")
