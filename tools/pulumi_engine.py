"""Find the Pulumi engine for the stack tests, or build it.

Prints the path of a usable `pulumi`: the one on the PATH if it is new enough, else the one in the cache, else a
new build in the cache, from the pinned `tools/go.mod` (three minutes of CPU time, once). Messages go to stderr.

The build contains only the engine, without the clients of clouds that `pulumi_engine.patch` takes out. `pulumi up` on
a project also needs `pulumi-language-python`, which is part of Pulumi's installer
(https://www.pulumi.com/docs/install/) but not a Go module of its release. The tests run inline programs with the
Automation API, which does not need it.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Never

from tool_cache import cache_folder, go_build, locked, log

TOOLS = Path(__file__).resolve().parent
MODULE: Final = "github.com/pulumi/pulumi/pkg/v3"
PATCH: Final = TOOLS / "pulumi_engine.patch"
LEFT_OUT: Final = ("authhelpers/*", "cmd/pulumi/cloud/[!r]*", "operations/operations_*")
"""The files of the module that the patch makes superfluous."""
VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"


class EngineError(Exception):
    """There is no engine; the message names the fix."""


def pinned_version() -> str:
    """Return the version that go.mod pins, such as `3.259.0`."""
    match = re.search(
        r"^\s*github\.com/pulumi/pulumi/pkg/v3 v([0-9.]+)",
        (TOOLS / "go.mod").read_text(),
        re.MULTILINE,
    )
    if match is None:
        raise EngineError(
            f"{TOOLS / 'go.mod'} requires no github.com/pulumi/pulumi/pkg/v3; restore that line from git"
        )
    return match[1]


def version_of(pulumi: Path) -> str | None:
    """Return the output of `pulumi version` without its `v`; None if it is not a version."""
    command = [str(pulumi), "version"]
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        output = subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, env=environment
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"v?(\d+\.\d+\.\d+)\S*", output.strip())
    return match[1] if match else None


def is_at_least(version: str | None, minimum: str) -> bool:
    """Return True if a version is the minimum or newer, compared by numbers."""
    return version is not None and _numbers(version) >= _numbers(minimum)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def cached_engine() -> Path:
    """Return the path of the built engine, which may not exist."""
    return cache_folder() / f"pulumi-{pinned_version()}" / "pulumi"


def find_engine() -> Path | None:
    """Return the engine on the PATH if it is new enough, else the cached one, else None."""
    on_path = shutil.which("pulumi")
    if on_path and is_at_least(version_of(Path(on_path)), pinned_version()):
        return Path(on_path)
    cached = cached_engine()
    return cached if cached.is_file() else None


def build_engine() -> Path:
    """Build the pinned engine into the cache and return its path; a second caller waits for the first.

    Raises:
        EngineError: Go is missing, the build failed, or the result is not the pinned version.
    """
    engine = cached_engine()
    if shutil.which("go") is None:
        raise EngineError(_no_go_message())
    engine.parent.mkdir(parents=True, exist_ok=True)
    with locked(engine.parent / ".lock"):
        if not engine.is_file():
            _build(engine)
    return engine


def _no_go_message() -> str:
    on_path = shutil.which("pulumi")
    current = (
        f"{on_path} is {version_of(Path(on_path)) or 'of an unknown version'}"
        if on_path
        else "it is not on the PATH"
    )
    return (
        f"the stack tests need pulumi {pinned_version()} or newer ({current}), and Go is not installed to build it.\n"
        "Install either of them, then run this again:\n"
        "  Pulumi: https://www.pulumi.com/docs/install/\n"
        f"  Go {_go_version()} or newer: https://go.dev/doc/install"
    )


def _go_version() -> str:
    match = re.search(r"^go (\S+)", (TOOLS / "go.mod").read_text(), re.MULTILINE)
    return match[1] if match else "1.25"


def _build(engine: Path) -> None:
    version = pinned_version()
    output_file, unfinished = engine.parent / "build.log", engine.parent / "pulumi.unfinished"
    log(f"building pulumi {version} into {engine.parent} (three minutes of CPU time, once)")
    with TemporaryDirectory(dir=engine.parent) as folder:
        modules = _patched_module(Path(folder))
        flags = f"-s -w -X {VERSION_VARIABLE}={version}"
        target = ["-o", str(unfinished), f"{MODULE}/cmd/pulumi"]
        if go_build(TOOLS, output_file, [f"-modfile={modules}", "-ldflags", flags, *target]):
            output = f"{output_file.read_text()}The whole log: {output_file}"
            raise EngineError(_failure_message("go build", output))
    if version_of(unfinished) != version:
        raise EngineError(
            f"{unfinished} is not version {version}: run `{unfinished} version`; log: {output_file}"
        )
    # Renamed at the end, so that an interrupted build is never used as an engine.
    unfinished.replace(engine)
    log("built")


def _patched_module(folder: Path) -> Path:
    """Copy Pulumi's module, patch it, and return a go.mod by which it replaces the original."""
    module = json.loads(_output(["go", "mod", "download", "-json", MODULE], TOOLS))["Dir"]
    copy = folder / "pulumi"
    # Without the modes of the original: Go's cache of modules is read-only.
    ignored = shutil.ignore_patterns("testdata", "*_test.go")
    shutil.copytree(module, copy, ignore=ignored, copy_function=shutil.copyfile)
    for path in (copy, *copy.rglob("*/")):
        path.chmod(0o755)
    for pattern in LEFT_OUT:
        for path in copy.glob(pattern):
            path.unlink()
    # In a folder of a repository, git would skip what is not below its root.
    _output(["git", "apply", str(PATCH)], copy, GIT_CEILING_DIRECTORIES=str(folder.resolve()))
    for name in ("go.mod", "go.sum"):
        shutil.copy(TOOLS / name, folder)
    _output(["go", "mod", "edit", f"-replace={MODULE}={copy}"], folder)
    return folder / "go.mod"


def _output(command: list[str], folder: Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    completed = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if completed.returncode:
        raise EngineError(_failure_message(" ".join(command[:2]), completed.stderr))
    return completed.stdout


def _failure_message(command: str, output: str) -> str:
    last = "\n".join(f"  {line}" for line in output.splitlines()[-5:])
    return (
        f"`{command}` of pulumi {pinned_version()} failed; its last lines:\n{last}\n"
        "Install Pulumi instead of building it: https://www.pulumi.com/docs/install/"
    )


def _raise_no_engine() -> Never:
    raise EngineError(
        "no pulumi engine yet; `python tools/pulumi_engine.py` builds one (three minutes, once)"
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the engine's path; return 1 and print the reason if there is none."""
    parser = argparse.ArgumentParser(
        description="Print the path of a usable pulumi, building it if necessary."
    )
    parser.add_argument("--find", action="store_true", help="do not build: fail if there is none")
    options = parser.parse_args(arguments)
    try:
        print(find_engine() or (_raise_no_engine() if options.find else build_engine()))
    except EngineError as error:
        log(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
