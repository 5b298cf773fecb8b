"""Start a job as its submission describes, without a shell."""

import json
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from tpucfg.cli.create_objects import create_objects
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.interrupts import terminations_as_interrupts
from tpucfg.cli.run_command import run_command
from tpucfg.render.config import Config
from tpucfg.targets import Command, Submission
from tpucfg.targets.interface import Creations
from tpucfg.targets.objects import json_value


def start_job(submission: Submission, config: Config, render_command: Sequence[str]) -> None:
    """Start a job, and print the commands that watch and delete it.

    Args:
        submission: The commands of the job.
        config: Its config.
        render_command: The command that prints the config, for the line that is printed.

    Raises:
        CommandExit: The job was not started.
    """
    program = submission.start.program
    if shutil.which(program) is None:
        hint = f"install {program}, or print the command without --execute and run it elsewhere"
        raise CommandExit(ERRORS, f"{program} is not on the PATH, and nothing was started", hint)
    start_time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        _start(submission.start, config, render_command)
    except OSError as error:
        message = f"{program} cannot be started: {error.strerror or error}"
        raise CommandExit(ERRORS, message, f"reinstall {program}, or put another one first on the PATH") from None
    print(f"watch it with:  {submission.watch.bash()}", file=sys.stderr)
    if log := submission.log_since(start_time) if submission.log_since else submission.log:
        print(f"read its log with: {log.bash()}", file=sys.stderr)
    print(f"delete it with: {submission.delete.bash()}", file=sys.stderr)


def _start(start: Command | Creations, config: Config, render_command: Sequence[str]) -> None:
    """Run the command with the config on its standard input, or create the objects of the config."""
    if isinstance(start, Creations):
        with terminations_as_interrupts():  # a CI job that is canceled undoes its start, too
            create_objects(start, config.request_body)
        return
    if start.config_format == "yaml":
        text = config.text
    else:
        text = json.dumps(json_value(config.request_body, config.companions))
    print(f"running: {start.bash(render_command)}", file=sys.stderr)
    if status := run_command(start, text):
        raise CommandExit(ERRORS, f"{start.argv[0]} exited with status {status}; its own output is above")
