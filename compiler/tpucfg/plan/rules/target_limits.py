"""Limits of the targets on settings of `trainer`: one table for all targets, and the findings about its rows.

Sizes that a target does not take are in the catalog, and capacity that it does not offer is in `capacity_table`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import KeyPath
from tpucfg.plan.naming import workload_account
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings, Trainer
from tpucfg.text_format import dotted


class TargetLimit(NamedTuple):
    """A setting of the trainer that a target does not have."""

    target: str
    key: str
    """The key of `trainer`."""
    reason: str
    """The reason, as a sentence without its full stop, with `{path}` and `{value}` of the setting."""
    fix: str
    """The edit that helps instead, as an imperative to follow the deletion of the key; may be empty."""
    source: str
    """The public page."""
    id: str = "TPU059"
    applies: Callable[[Trainer, Slice], object] | None = None
    """Returns a true value if the setting has an effect; by default, every value but an empty one has."""
    at_value: bool = False
    """True if another value is accepted, so that the finding is at the value and not at the key."""


_JOBS: Final = "https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs"
_NO_VARIABLES: Final = "ai-platform sets no environment variables for the program"
_RESTARTS: Final = "https://cloud.google.com/vertex-ai/docs/training/understanding-training-service"
_ENV: Final = "https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar"
_IMAGE: Final = "delete its module, and set trainer.image to an image that contains the package"


def _runs_containers(target: str, source: str) -> TargetLimit:
    reason = f"{target} runs containers, and {{path}} is a Python package"
    return TargetLimit(target, "package", reason, _IMAGE, source, "TPU051")


TARGET_LIMITS: Final = (
    TargetLimit(
        "ai-platform", "env", _NO_VARIABLES, "and pass the values as trainer.args, or set them in the image", _JOBS
    ),
    TargetLimit(
        "ai-platform",
        "secrets",
        f"{_NO_VARIABLES}, so none from Secret Manager",
        "and read them in the program",
        _JOBS,
    ),
    TargetLimit(
        "ai-platform",
        "xla_flags",
        f"{_NO_VARIABLES}, so no flags of libtpu",
        "",
        _JOBS,
        # Flags for other generations have no effect on the slice.
        applies=lambda trainer, slice_: trainer.xla_flags.get(slice_.generation),
    ),
    TargetLimit(
        "ai-platform", "mounts", "ai-platform mounts no buckets", "and read from Cloud Storage in the program", _JOBS
    ),
    TargetLimit(
        "ai-platform",
        "restarts",
        "ai-platform has no number of restarts",
        "",
        _JOBS,
        applies=lambda trainer, _: trainer.restarts is not None,
    ),
    TargetLimit(
        "vertex-ai",
        "restarts",
        "{path} is {value}, and vertex-ai takes no number: it restarts a failed worker up to 5 times and then the "
        "whole job up to 3 times, or never",
        "or set it to 0 for no restart",
        _RESTARTS,
        at_value=True,
    ),
    TargetLimit(
        "vertex-ai",
        "secrets",
        "vertex-ai has no variables from Secret Manager: the program has to read them itself, by these lines",
        "add these lines to the trainer, and run the command once",
        _ENV,
    ),
    _runs_containers("cloud-tpu", "https://cloud.google.com/tpu/docs/run-in-container"),
    _runs_containers("compute-engine", "https://cloud.google.com/tpu/docs/run-in-container"),
    _runs_containers("gke", "https://cloud.google.com/kubernetes-engine/docs/how-to/tpus"),
)
TARGETS_WITHOUT_SECRETS: Final = frozenset(row.target for row in TARGET_LIMITS if row.key == "secrets")
"""The targets whose variables cannot refer to a secret."""


def target_limit_findings(project: Project, environment: Environment, slices: Sequence[Slice]) -> Iterator[Finding]:
    """Yield an error for each setting that the environment's sizes have and its target has not."""
    rows = [row for row in TARGET_LIMITS if row.target == environment.target]
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for row in rows:
            value = getattr(settings.trainer, row.key)
            if row.applies(settings.trainer, slice_) if row.applies else value:
                yield _finding(project, environment, slice_, settings, row)


def _finding(
    project: Project, environment: Environment, slice_: Slice, settings: Settings, row: TargetLimit
) -> Finding:
    path = settings.source(("trainer", row.key))
    hint = removal_hint(project, environment, path, row.key)
    lines: list[str] = []
    if row.key == "secrets":
        from tpucfg.plan.identities import secret_lines  # here, as only a finding has them

        account = workload_account(project, environment, slice_.size)
        lines = secret_lines(environment, account, settings.trainer.secrets)
    locate = project.document.value_location if row.at_value else project.document.key_location
    return Finding.of(
        row.id,
        row.reason.format(path=dotted(path), value=getattr(settings.trainer, row.key)),
        locate(path),
        help=f"{hint}, {row.fix}" if row.fix else hint,
        details=(*lines, f"see {row.source}"),
    )


def removal_hint(project: Project, environment: Environment, path: KeyPath, *keys: str) -> str:
    """Return the edit that takes a setting of the trainer away for one environment, whichever layer has it."""
    own = path[:2] == environment.path or len(project.environments) == 1
    return f"delete {dotted(path)}" if own else f"set {dotted((*environment.path, 'trainer', *keys))} to null"
