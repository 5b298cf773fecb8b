"""The commands that start, watch and delete a job, as values. Only commands that need them import this module."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from tpucfg.named_tuple import NamedTuple
from tpucfg.schemas import Problem
from tpucfg.targets.interface import RequestBody

TOKEN: Final = ("gcloud", "auth", "print-access-token")
"""Prints the user's access token: https://cloud.google.com/sdk/gcloud/reference/auth/print-access-token."""
AUTHORIZATION: Final = "Authorization: Bearer %s"
"""The header; `%s` is replaced by the token."""


class Command(NamedTuple):
    """A command line as a tuple of arguments, which needs no shell."""

    argv: tuple[str, ...]
    reads_config: bool = False
    """True if the command reads the config from its standard input."""
    config_format: Literal["yaml", "json"] = "yaml"
    """The format of the config that it reads."""
    token: bool = False
    """True if it needs the caller's access token, which `with_token` and `bash` pass to it."""

    @property
    def program(self) -> str:
        """The program that the command runs."""
        return self.argv[0]

    def with_token(self, file: str) -> tuple[str, ...]:
        """Return the arguments that read the header AUTHORIZATION from a file.

        The token is never an argument, because every process can read the arguments of other processes. curl reads
        headers from a file since 7.55: https://curl.se/docs/manpage.html#-H.
        """
        return (*self.argv, "--header", f"@{file}") if self.token else self.argv

    def bash(self, config: Sequence[str] = ()) -> str:
        """Return a line to paste into bash; `config` is the command that prints the config, if one is needed.

        No argument list contains the token: `printf` is a builtin of bash, and the process substitution is a pipe.
        """
        from shlex import join, quote

        line = join(self.argv)
        if self.token:
            line += f' --header @<(printf {quote(AUTHORIZATION)} "$({join(TOKEN)})")'
        return f"{join(config)} | {line}" if self.reads_config and config else line


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


class Manifest(NamedTuple):
    """An object of a cluster, which kubectl creates from its document on standard input."""

    kind: str
    """The kind of its document in the config."""
    name: str
    """The name by which commands and messages know it, such as `jobset/NAME`."""
    create: Command
    delete: Command
    install: str = ""
    """The way to get the kind into a cluster, as a help line; empty for a kind that every cluster has."""


class Requirement(NamedTuple):
    """Something that a job needs in its cluster."""

    name: str
    find: Command
    """Prints one line for each that exists."""
    consequence: str
    """The consequence of its absence, as a clause."""
    fix: str
    number: int = 1
    is_note: bool = False
    """True if the job may start without it: a note instead of an error."""
    remedy: tuple[Manifest, RequestBody] | None = None
    """The object that is created if it is missing."""


class Manifests(NamedTuple):
    """The creation of all objects of a job by kubectl, in order."""

    steps: tuple[Manifest, ...]
    requirements: tuple[Requirement, ...]
    trials: Callable[[RequestBody], tuple[RequestBody, ...]]
    """Returns further objects that the server is asked about, and that are never created."""
    same_run: Command | None = None
    """Prints each job of the same run with its end, or `<none>`; None for a job whose folder no other one has."""

    @property
    def program(self) -> str:
        """The program that the commands run."""
        return self.steps[0].create.program


class Submission(NamedTuple):
    """The commands that start, watch and delete a job."""

    start: Command | Creations | Manifests
    watch: Command
    deletes: tuple[Command, ...]
    """Each deletes one object, from the last that is created to the first."""
    notes: tuple[str, ...] = ()
    """Facts to know before running the command."""
    log: Command | None = None
    """The command that prints the program's output; None if `watch` prints it or a note names the command."""
    log_since: "Callable[[str], Command] | None" = None
    """Returns the command that prints the output since a time in RFC 3339, if `log` prints that of earlier runs too."""


class SubmissionError(Exception):
    """The spec lacks a value that only the submission of a job needs."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
        """The missing value, at a path of the spec; `problem.finding_in(project.document)` makes it a finding."""
