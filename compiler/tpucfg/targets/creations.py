"""The start of a job by several requests: each of them creates an object, and is answered by an operation.

A target builds them for its service, as `tpucfg.targets.compute_engine.creations` does; `submit --execute` runs them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tpucfg.targets.interface import Command


class Operation(NamedTuple):
    """The state of a creation or a deletion."""

    url: str = ""
    """The address at which its end can be waited for; empty if an answer is no operation."""
    is_done: bool = False
    error: str = ""
    """The reason of a failure; empty if there is none."""


class Creation(NamedTuple):
    """The creation of one object. Each command but `delete` prints the answer, then a line with the HTTP status."""

    document: str
    """The key of the object in the request body."""
    name: str
    find: Command
    """Prints the existing object of the name."""
    create: Command
    """Posts the document."""
    undo: Command
    """Deletes the object."""
    delete: Command
    """Deletes the object, as a command to copy."""
    content: str = ""
    """A text that an existing object of the name contains only if it is equal; empty if none is reused."""


class Creations(NamedTuple):
    """The creation of all objects of a job, in order."""

    steps: tuple[Creation, ...]
    bash: Callable[[Sequence[str], str], str]
    """Returns lines to paste into bash, given the command that prints the config, and the job's hash.

    The config contains the hash, so that the lines start no other job.
    """
    wait: Callable[[str], Command]
    """Returns the command that waits for the end of an operation, by its URL, and prints the operation."""
    operation: Callable[[Mapping[str, Any]], Operation]
    """Reads an operation, or the error of a refused request, from an answer."""
    max_waits: int
    """The waits for an object that another one refers to."""

    @property
    def program(self) -> str:
        """The program that the commands run."""
        return self.steps[0].create.program
