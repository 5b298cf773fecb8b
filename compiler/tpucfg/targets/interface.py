"""The interface of a target, a module with the names of `Target` about one service, and helpers for request bodies."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath
from tpucfg.plan import Job
from tpucfg.schemas import Problem
from tpucfg.spec import LAYERED, Environment, Project

if TYPE_CHECKING:
    from tpucfg.targets.commands import Submission

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


class ExtraEffect(NamedTuple):
    """A way in which a field of `extra` would falsify what is planned and priced."""

    id: str
    """The id of the finding."""
    key: str
    """The path in the spec of the setting that decides instead; empty if there is none."""
    text: str
    """The effect, as a clause that follows `it would`."""
    fix: str = ""
    """The edit; by default the deletion, with the setting to use instead."""


MACHINES: Final = ExtraEffect("TPU068", "sizes", "add machines that the plan does not count")
MORE_CHIPS: Final = ExtraEffect("TPU068", "sizes", "ask for chips that the plan does not count")
MACHINE: Final = ExtraEffect("TPU067", "sizes", "describe another machine than the size has")
CAPACITY: Final = ExtraEffect("TPU067", "capacity", "get the machines in another way")
DEADLINE: Final = ExtraEffect("TPU067", "trainer.max_run_duration", "set another time limit")


class Reserved(NamedTuple):
    """A field that the target does not write, and that `extra` cannot set."""

    effect: ExtraEffect
    source: str
    """The public page that states the effect."""
    applies: Callable[[Any, Job], bool] = lambda *_: True
    """Returns True for a value that has this effect on a job; by default all of them have it."""


def commands_in(module: str) -> "Callable[[Job], Submission]":
    """Return the function `submission` of a module, which its first call imports: most commands start no job."""
    return lambda job: cast("Submission", import_module(module).submission(job))


def spec_path(setting: str, job: Job) -> KeyPath:
    """Return the path in the spec of a setting, for the job's environment and size and in the layer that sets it."""
    placeholders = {"<env>": job.environment.name, "<size>": job.size}
    path = tuple(placeholders.get(step, step) for step in setting.split("."))
    return job.settings.source(path) if path[0] in LAYERED else path


class Target(Protocol):
    """The interface of a module in `targets/`.

    A target whose jobs need further objects also has `companions(job) -> tuple[RequestBody, ...]`, the objects that are
    created before the request body, and `COMPANION_SCHEMAS`, the schema of each by its kind; read both through
    `tpucfg.targets.objects`. A target whose request body is several objects has `DOCUMENTS`, their keys in the order
    of creation, and `KIND_PREFIX`, the start of their kinds: see `tpucfg.targets.objects`. A target that knows another
    place for a value which the API's schema refuses has `refused_help(path, parent, catalog) -> str`, the edit.
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

    def spec_findings(
        self, project: Project, environment: Environment, slices: Sequence[Slice]
    ) -> Iterable[Finding]:
        """Yield the findings about values of the spec that the service refuses: sizes, regions, kinds of trainer."""

    def request_body(self, job: Job) -> RequestBody:
        """Return the request body of a job, without the spec's `extra`."""

    def rules(self, body: RequestBody, catalog: Catalog) -> Iterable[Problem]:
        """Yield the problems for which the service would refuse a request body that fits the API's schema.

        The body may have been rendered, or read from a config written by hand.
        """

    def submission(self, job: Job) -> "Submission":
        """Return the commands of a job.

        Raises:
            SubmissionError: The spec lacks a value that only the submission needs.
        """


# Helpers with which several targets build their request bodies.

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The scope of all of Google Cloud, for hosts whose account's roles limit its access:
https://cloud.google.com/compute/docs/access/service-accounts#associating_a_service_account_to_an_instance."""

_LABELS: Final = "https://cloud.google.com/resource-manager/docs/labels-overview"


def label_origins(labels: str) -> Mapping[str, Origin]:
    """Return the origins of a job's labels, which are below a path of the request body."""
    own = Origin(
        "rule", "lists and the bill are read by spec, environment, size and run", _LABELS, "name"
    )
    return {f"{labels}.[tpucfg-*]": own, f"{labels}.*": Origin("spec", "environments.<env>.labels")}


def labels_flag(labels: Mapping[str, str]) -> str:
    """Return gcloud's flag for the labels of a job."""
    return f"--labels={','.join(f'{key}={value}' for key, value in labels.items())}"


def reservation_path(job: Job, collection: Literal["zones", "locations"]) -> str | None:
    """Return the full name of a job's reservation, with the zone that the spec omits; None for other capacity.

    Args:
        job: The job, whose size has a zone: a reservation without one is TPU005.
        collection: The word before the zone in the names of the target's API.
    """
    capacity = job.capacity
    if capacity.reservation is None:
        return None
    project = capacity.reservation_project or job.environment.project
    return f"projects/{project}/{collection}/{job.zone}/reservations/{capacity.reservation_name}"


def google_account(job: Job) -> str:
    """Return the Google account that a job runs as: the one that the spec names, or the environment's own."""
    account: str = job.options.get("service_account") or job.account
    return account


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields without those that are None or an empty text, list or mapping."""
    # 0 and False are values.
    return {key: value for key, value in fields.items() if value or value == 0}
