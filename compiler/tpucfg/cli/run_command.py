"""Run the commands of a submission without a shell, with the caller's access token where one is needed."""

import os
import subprocess
import sys

from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.targets.interface import AUTHORIZATION, TOKEN, Command


def run_command(command: Command, text: str) -> int:
    """Run a command with a text on its standard input, and return its exit status."""
    sys.stdout.flush()  # before the program writes to the same output
    return _run(command, text, access_token() if command.token else "", capture=False).returncode


def output_of(command: Command, text: str, token: str) -> str:
    """Return what a command prints, whatever its exit status."""
    return _run(command, text, token, capture=True).stdout.decode("utf-8", "replace")


def _run(command: Command, text: str, token: str, *, capture: bool) -> "subprocess.CompletedProcess[bytes]":
    stdout = subprocess.PIPE if capture else None
    if not command.token:
        return subprocess.run(command.argv, input=text.encode(), stdout=stdout, check=False)
    # The token goes through a pipe, because every process of the machine can read an argument list.
    read_end, write_end = os.pipe()
    os.write(write_end, (AUTHORIZATION % token).encode())
    os.close(write_end)
    argv = command.with_token(f"/dev/fd/{read_end}")
    try:
        return subprocess.run(argv, input=text.encode(), stdout=stdout, check=False, pass_fds=(read_end,))
    finally:
        os.close(read_end)


def access_token() -> str:
    """Return the caller's access token.

    Raises:
        CommandExit: gcloud prints none.
    """
    try:
        return subprocess.run(TOKEN, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise CommandExit(
            ERRORS, f"no access token, and nothing was started: {reason.strip()}", "run: gcloud auth login"
        ) from None
