"""What every target is: a module with these names. It knows its service and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.plan.model import Job
from tpucfg.schemas import Problem
from tpucfg.spec.model import Environment, Project

Message = dict[str, Any]
"""A message of the target's API: plain data, in the order in which it is written."""


class Origin(NamedTuple):
    """Where a field of the message comes from, for `tpucfg why`."""

    kind: str
    """`spec`: a path of the spec; `catalogue`: a column of the size's row; `figure`: args; `rule`: the service's."""
    what: str
    """The path (`*`: the job's environment), the column, or the rule in a sentence."""
    source: str = ""
    """The public page that states a rule."""


class Command(NamedTuple):
    """A command line, as a list that no shell has to take apart."""

    argv: tuple[str, ...]
    reads_config: bool = False
    """Whether the config goes to its standard input."""


class Submission(NamedTuple):
    """How a job is started, watched and deleted."""

    start: Command
    watch: Command
    delete: Command
    notes: tuple[str, ...] = ()
    """What the person who runs it should know first."""


class Target(Protocol):
    """The interface of a module in `targets/`."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """As the spec writes it."""

    @property
    def ORIGINS(self) -> Mapping[str, Origin]:  # noqa: N802 - likewise
        """By path of the message, `*` for any one step: a test holds that every field that is ever written has one."""

    def spec_findings(self, project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterable[Finding]:
        """What the service refuses of this spec: sizes, regions, kinds of trainer."""

    def message(self, job: Job) -> Message:
        """The job as the API's message, without the spec's `extra`."""

    def rules(self, message: Message, catalog: Catalog) -> Iterable[Problem]:
        """What the service would refuse of a message that fits the API's schema, whoever wrote it."""

    def submission(self, job: Job) -> Submission:
        """The commands of the job."""
