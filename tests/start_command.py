"""The command that starts a job, of a target that starts it by one command."""

from tpucfg.targets.commands import Command, Submission


def start_command(submission: Submission) -> Command:
    """Return the command."""
    assert isinstance(submission.start, Command)
    return submission.start
