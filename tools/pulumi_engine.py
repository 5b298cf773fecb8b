"""Find the Pulumi engine that the stack tests run on, and build it where it is missing.

Prints the path of a usable `pulumi`: the one on the PATH if it is new enough, else the one in the cache, else one that
is built there from the pinned `tools/go.mod` (about three minutes on two cores, once). All else goes to stderr.

The build holds the engine alone. `pulumi up` on a project also needs `pulumi-language-python`, which Pulumi's installer
brings (https://www.pulumi.com/docs/install/) and which is no Go module of its own release; the Automation API with the
program inline, which is how the tests run it, does without.
"""

import argparse
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Never, TextIO

TOOLS = Path(__file__).resolve().parent
PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
CACHE_VARIABLE = "TPUCFG_TOOLS_CACHE"
PROGRESS_SECONDS = 10.0


class EngineError(Exception):
    """No engine; the message says what to do."""


def pinned_version() -> str:
    """Return the version that go.mod pins, such as `3.259.0`."""
    found = re.search(r"^\s*github\.com/pulumi/pulumi/pkg/v3 v([0-9.]+)", (TOOLS / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise EngineError(f"{TOOLS / 'go.mod'} requires no github.com/pulumi/pulumi/pkg/v3; restore that line from git")
    return found[1]


def version_of(pulumi: Path) -> str | None:
    """Return what `pulumi version` says, without its `v`; None where that is no version."""
    command = [str(pulumi), "version"]
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.fullmatch(r"v?(\d+\.\d+\.\d+)\S*", said.strip())
    return found[1] if found else None


def new_enough(version: str | None, least: str) -> bool:
    """Compare two versions by their numbers."""
    return version is not None and _numbers(version) >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def cached_engine() -> Path:
    """Return where the built engine is or would be; TPUCFG_TOOLS_CACHE names a folder that several checkouts share."""
    folder = Path(os.environ.get(CACHE_VARIABLE) or TOOLS.parent / ".cache" / "tools")
    return folder.absolute() / f"pulumi-{pinned_version()}" / "pulumi"


def find_engine() -> Path | None:
    """Return the engine on the PATH if it is new enough, else the cached one, else None."""
    on_path = shutil.which("pulumi")
    if on_path and new_enough(version_of(Path(on_path)), pinned_version()):
        return Path(on_path)
    cached = cached_engine()
    return cached if cached.is_file() else None


def build_engine() -> Path:
    """Build the pinned engine into the cache and return its path; a second caller waits for the first.

    Raises:
        EngineError: Go is missing, the build failed, or what it made is not the pinned version.
    """
    engine = cached_engine()
    if shutil.which("go") is None:
        raise EngineError(_no_go())
    engine.parent.mkdir(parents=True, exist_ok=True)
    with _locked(engine.parent / ".lock"):
        if not engine.is_file():
            _build(engine)
    return engine


def _no_go() -> str:
    on_path = shutil.which("pulumi")
    have = (
        f"{on_path} is {version_of(Path(on_path)) or 'of no version that it tells'}"
        if on_path
        else "it is not on the PATH"
    )
    return (
        f"the stack tests need pulumi {pinned_version()} or newer ({have}), and there is no Go to build it with.\n"
        "Install either of them, then run this again:\n"
        "  Pulumi: https://www.pulumi.com/docs/install/\n"
        f"  Go {_go_version()} or newer: https://go.dev/doc/install"
    )


def _go_version() -> str:
    found = re.search(r"^go (\S+)", (TOOLS / "go.mod").read_text(), re.MULTILINE)
    return found[1] if found else "1.25"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"another build is under way; waiting for it (lock: {path})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(engine: Path) -> None:
    version = pinned_version()
    log, unfinished = engine.parent / "build.log", engine.parent / "pulumi.unfinished"
    _say(f"building pulumi {version} into {engine.parent} (about three minutes on two cores, once)")
    flags = f"-s -w -X {VERSION_VARIABLE}={version}"
    command = ["go", "build", "-v", "-mod=readonly", "-o", str(unfinished), "-ldflags", flags, PACKAGE]
    with log.open("w") as output:
        failed = _run_with_progress(command, output, log)
    if failed:
        raise EngineError(_build_failed(command, log))
    if version_of(unfinished) != version:
        raise EngineError(f"{unfinished} does not say that it is {version}: run `{unfinished} version`; log: {log}")
    # The rename comes last, so that a build that was interrupted is never taken for an engine.
    unfinished.replace(engine)
    _say("built")


def _run_with_progress(command: list[str], output: TextIO, log: Path) -> bool:
    began = time.monotonic()
    with subprocess.Popen(command, cwd=TOOLS, stdout=output, stderr=subprocess.STDOUT) as process:
        while True:
            try:
                return process.wait(timeout=PROGRESS_SECONDS) != 0
            except subprocess.TimeoutExpired:
                lines = log.read_text().count("\n")
                _say(f"  {time.monotonic() - began:4.0f} s, {lines} packages downloaded or compiled")


def _build_failed(command: list[str], log: Path) -> str:
    last = "\n".join(f"  {line}" for line in log.read_text().splitlines()[-5:])
    return (
        f"`{command[0]} {command[1]}` of pulumi {pinned_version()} failed; its last lines:\n{last}\n"
        f"The whole log: {log}\n"
        "Or install Pulumi, then nothing has to be built: https://www.pulumi.com/docs/install/"
    )


def _refuse_to_build() -> Never:
    raise EngineError("no pulumi engine yet; `python tools/pulumi_engine.py` builds one (three minutes, once)")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Print the engine's path; exit 1, with the reason, where there is none."""
    parser = argparse.ArgumentParser(description="Print the path of a usable pulumi, building it where it is missing.")
    parser.add_argument("--find", action="store_true", help="do not build: fail where there is none yet")
    parsed = parser.parse_args(arguments)
    try:
        print(find_engine() or (_refuse_to_build() if parsed.find else build_engine()))
    except EngineError as error:
        _say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
