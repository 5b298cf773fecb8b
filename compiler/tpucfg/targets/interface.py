"""What every target is: a module with these names. It knows its service and nothing else."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.yamldoc.document import KeyPath

RequestBody = dict[str, Any]
"""A message of the target's API: plain data, in the order in which it is written."""


class Origin(NamedTuple):
    """Where a field of the message comes from, for `tpucfg why`."""

    kind: str
    """`spec`: a path of the spec; `catalogue`: a column of the size's row; `figure`: args; `rule`: the service's."""
    what: str
    """The path, in which `<env>` and `<size>` stand for the job's, the column, or the rule in a sentence."""
    source: str = ""
    """The public page that states a rule."""


TOKEN: Final = ("gcloud", "auth", "print-access-token")
"""Prints the caller's access token: https://cloud.google.com/sdk/gcloud/reference/auth/print-access-token."""
AUTHORIZATION: Final = "Authorization: Bearer %s"
"""The header, with the token in the place of `%s`."""


class Command(NamedTuple):
    """A command line, as a list that no shell has to take apart."""

    argv: tuple[str, ...]
    reads_config: bool = False
    """Whether the config goes to its standard input."""
    config_format: Literal["yaml", "json"] = "yaml"
    """How the config has to be written there."""
    token: bool = False
    """Whether it also needs the caller's access token: `with_token` and `bash` say how it gets there."""

    def with_token(self, file: str) -> tuple[str, ...]:
        """The arguments, where a file holds `AUTHORIZATION` with the token: an argument could be read by any process.

        curl reads headers from a file since 7.55: https://curl.se/docs/manpage.html#-H.
        """
        return (*self.argv, "--header", f"@{file}") if self.token else self.argv

    def bash(self, config: Sequence[str] = ()) -> str:
        """A line to paste into bash; `config` is the command that prints the config, if one does.

        The token stays out of every argument list: `printf` is a builtin, and the substituted file is a pipe.
        """
        from shlex import join, quote

        line = join(self.argv)
        if self.token:
            line += f' --header @<(printf {quote(AUTHORIZATION)} "$({join(TOKEN)})")'
        return f"{join(config)} | {line}" if self.reads_config and config else line


class Submission(NamedTuple):
    """How a job is started, watched and deleted."""

    start: Command
    watch: Command
    delete: Command
    notes: tuple[str, ...] = ()
    """What the person who runs it should know first."""
    log: Command | None = None
    """What prints the program's output; None where watching does, or a note says how."""


class SubmissionError(Exception):
    """The spec does not say enough to start the job; nothing else about it needs to be wrong."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
        """What is missing, at a path of the spec: `problem.found_in(project.document)` is the finding."""


class Target(Protocol):
    """The interface of a module in `targets/`."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """As the spec writes it."""

    @property
    def ORIGINS(self) -> Mapping[str, Origin]:  # noqa: N802 - likewise
        """By path of the message: a test holds that every field that is ever written has one.

        `*` stands for any one step, a final `**` for any number, and a key that has dots itself stands in brackets.
        """

    def spec_findings(self, project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterable[Finding]:
        """What the service refuses of this spec: sizes, regions, kinds of trainer."""

    def request_body(self, job: Job) -> RequestBody:
        """The job as the API's message, without the spec's `extra`."""

    def rules(self, message: RequestBody, catalog: Catalog) -> Iterable[Problem]:
        """What the service would refuse of a message that fits the API's schema, whoever wrote it."""

    def submission(self, job: Job) -> Submission:
        """The commands of the job.

        Raises:
            SubmissionError: The spec lacks what only the submission needs.
        """


# Which entry of a target's ORIGINS a path of its message falls under.


_STEP: Final = r"\[([^]]+)\]|([^.[]+)"


def origin_of(origins: Mapping[str, Origin], path: KeyPath) -> Origin | None:
    """Where the field at the path comes from; None for a field that only `extra` can have brought in."""
    steps = [str(step) for step in path]
    for pattern, origin in origins.items():
        if _matches(pattern_steps(pattern), steps):
            return origin
    return None


def pattern_steps(pattern: str) -> list[str]:
    """The steps of a pattern; a key that has dots itself stands in brackets: `labels.[kueue.x-k8s.io/queue-name]`."""
    return [quoted or plain for quoted, plain in re.findall(_STEP, pattern)]


def spec_path(origin: Origin, job: Job) -> KeyPath:
    """The path of the spec that an origin of kind `spec` names, for this job: `<env>` and `<size>` are filled in."""
    filled = {"<env>": job.environment.name, "<size>": job.size}
    return tuple(filled.get(step, step) for step in origin.what.split("."))


def _matches(pattern: Sequence[str], steps: Sequence[str]) -> bool:
    """`*` stands for any one step, a final `**` for any number of them."""
    if pattern and pattern[-1] == "**":
        pattern = pattern[:-1]
        steps = steps[: len(pattern)]
    return len(pattern) == len(steps) and all(want in ("*", step) for want, step in zip(pattern, steps, strict=True))
