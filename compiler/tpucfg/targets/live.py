"""The state of a submitted job, as the service's own client prints it.

The module `commands` of a target whose service can be asked has `questions(job)`: a generator that yields a question,
receives the answer, and returns the state. A question whose client fails is answered by None, and the rest is still
asked.
"""

from collections.abc import Generator, Iterable
from datetime import datetime
from importlib import import_module
from typing import Any, Final, Literal

from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import value_at
from tpucfg.plan import Job
from tpucfg.targets import TARGETS
from tpucfg.targets.commands import Command

State = Literal[
    "unknown", "not found", "waiting", "running", "ending", "succeeded", "failed", "stopped"
]

JSON: Final = "--format=json"
"""The format of gcloud's answers: https://cloud.google.com/sdk/gcloud/reference#--format."""
LOG_LINES: Final = 200
"""The last lines of a log that are read."""
LOG_LIMIT: Final = f"--limit={LOG_LINES}"
"""An option of `gcloud logging read`, which prints the newest entries first:
https://cloud.google.com/sdk/gcloud/reference/logging/read."""


class Question(NamedTuple):
    """A command line that changes nothing."""

    argv: tuple[str, ...]
    is_log: bool = False
    """True if the answer is the text of a log; it is JSON else."""


class LiveState(NamedTuple):
    """The state of a job, as far as its service states it."""

    state: State
    service_state: str = ""
    """The service's own word for it."""
    reason: str = ""
    """The reason why it waits or has failed, in the service's words."""
    started: datetime | None = None
    """The time from which its machines are charged, or an earlier one if the service does not state it."""
    ended: datetime | None = None
    restarts: int | None = None
    """None for a service that does not count them."""
    log: str | None = None
    """The end of the program's output, in a form that `tpucfg record --from` reads; None if none was read."""
    log_command: Command | None = None
    """The command that prints the output, if no read-only one does."""


Questions = Generator[Question, Any, LiveState]
UNKNOWN: Final = LiveState("unknown")
NOT_FOUND: Final = LiveState("not found")


def live_questions(job: Job) -> Questions | None:
    """Return the questions about a job to its service; None if it cannot be asked."""
    commands = import_module(f"{TARGETS[job.target]}.commands")
    return commands.questions(job) if hasattr(commands, "questions") else None


# Answers are what a service sends, so nothing is taken for granted about their shape.


def mappings(data: Any) -> list[dict[str, Any]]:
    """Return the mappings of a list; none for another value."""
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


def text_at(data: Any, *path: str | int) -> str:
    """Return the text at a path, or an empty one."""
    value = value_at(data, path)
    return value if isinstance(value, str) else ""


def time_at(data: Any, *path: str | int) -> datetime | None:
    """Return the time at a path, which all services write as RFC 3339."""
    try:
        time = datetime.fromisoformat(text_at(data, *path))
    except ValueError:
        return None
    return time if time.tzinfo else None


def earliest(times: Iterable[datetime | None]) -> datetime | None:
    """Return the first of the known times; None if there is none."""
    return min((time for time in times if time), default=None)
