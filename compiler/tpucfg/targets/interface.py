"""The interface of a target: a module with the names of `Target`, about one service."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.paths import KeyPath
from tpucfg.plan import Job
from tpucfg.schemas import Problem
from tpucfg.spec import LAYERED, Environment, Project

RequestBody = dict[str, Any]
"""The body of a request to the target's API: plain data, in the order in which it is written."""

COMPANIONS: Final = "companions"
"""The key under which paths, differences and `tpucfg why` name the further objects of a config, by their kind."""


class Origin(NamedTuple):
    """The origin of a field of the request body, for `tpucfg why` and for findings about the field."""

    kind: Literal["spec", "catalog", "figure", "rule"]
    """`spec`: a value of the spec; `catalog`: a column of a size's row; `figure`: a flag; `rule`: a service's rule."""
    detail: str
    """The path in the spec, with `<env>` and `<size>` as placeholders; the column; or the rule, as a clause."""
    source: str = ""
    """The public page that states the rule."""
    key: str = ""
    """For a rule: the path in the spec of the setting that it reads; empty if no setting changes the field."""


class Effect(NamedTuple):
    """A way in which a field of `extra` would falsify what is planned and priced."""

    id: str
    """The id of the finding."""
    key: str
    """The path in the spec of the setting that decides instead; empty if there is none."""
    text: str
    """The effect, as a clause that follows `it would`."""
    fix: str = ""
    """The edit; by default the deletion, with the setting to use instead."""


MACHINES: Final = Effect("TPU068", "sizes", "add machines that the plan does not count")
MORE_CHIPS: Final = Effect("TPU068", "sizes", "ask for chips that the plan does not count")
MACHINE: Final = Effect("TPU067", "sizes", "describe another machine than the size has")
CAPACITY: Final = Effect("TPU067", "capacity", "get the machines in another way")
DEADLINE: Final = Effect("TPU067", "trainer.max_run_duration", "set another time limit")


class Reserved(NamedTuple):
    """A field that the target does not write, and that `extra` cannot set."""

    effect: Effect
    source: str
    """The public page that states the effect."""
    applies: Callable[[Any, Job], bool] = lambda *_: True
    """Returns True for a value that has this effect on a job; by default all of them have it."""


def spec_path(setting: str, job: Job) -> KeyPath:
    """Return the path in the spec of a setting, for the job's environment and size and in the layer that sets it."""
    placeholders = {"<env>": job.environment.name, "<size>": job.size}
    path = tuple(placeholders.get(step, step) for step in setting.split("."))
    return job.settings.source(path) if path[0] in LAYERED else path


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


class Target(Protocol):
    """The interface of a module in `targets/`.

    A target whose jobs need further objects also has `companions(job) -> tuple[RequestBody, ...]`, the objects that are
    created before the request body, and `COMPANION_SCHEMAS`, the schema of each by its kind; read both through
    `tpucfg.targets.objects`. A target whose request body is several objects has `DOCUMENTS`, their keys in the order
    of creation, and `KIND_PREFIX`, the start of their kinds: see `tpucfg.targets.objects`.
    """

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """The name of the target in a spec."""

    @property
    def ORIGINS(self) -> Mapping[str, Origin]:  # noqa: N802 - a constant of the module
        """The origins by path of the request body; a test asserts that every field a target can write has one.

        The paths are patterns of `tpucfg.paths`; the first one that matches decides.
        """

    @property
    def RESERVED(self) -> Mapping[str, Reserved]:  # noqa: N802 - a constant of the module
        """The fields without an origin that `extra` cannot set, by pattern of their path."""

    def spec_findings(self, project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterable[Finding]:
        """Yield the findings about values of the spec that the service refuses: sizes, regions, kinds of trainer."""

    def request_body(self, job: Job) -> RequestBody:
        """Return the request body of a job, without the spec's `extra`."""

    def rules(self, body: RequestBody, catalog: Catalog) -> Iterable[Problem]:
        """Yield the problems for which the service would refuse a request body that fits the API's schema.

        The body may have been rendered, or read from a config written by hand.
        """

    def submission(self, job: Job) -> Submission:
        """Return the commands of a job.

        Raises:
            SubmissionError: The spec lacks a value that only the submission needs.
        """
