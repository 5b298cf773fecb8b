"""The job of a config in both revisions, and what explains a changed field of it."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from tpucfg.changes.command_lines import FLAG
from tpucfg.changes.config_diff import ENVIRONMENT, SIZE
from tpucfg.changes.facts import ABSENT, Change, Scope
from tpucfg.changes.tree_diff import ORDER
from tpucfg.paths import KeyPath, first_match, indexed
from tpucfg.plan import Job
from tpucfg.plan.job import XLA_FLAGS_VARIABLE
from tpucfg.plan.naming import account_id
from tpucfg.plan.rung import flag_name, rung_figures
from tpucfg.review.changes.jobs.job_settings import is_compared
from tpucfg.spec.project import Training
from tpucfg.targets import Origin, target_named
from tpucfg.targets.extra import Merged, merged_request_body
from tpucfg.targets.interface import COMPANIONS

_DERIVED: Final = ("catalog", "rule")
"""Origins of fields that follow from the size, the names and the target, whose changes have statements of their own."""
_LABELS: Final = "environments.<env>.labels"
_ENV_OPTION: Final = "--env."


class JobContext(NamedTuple):
    """A config in both revisions."""

    key: Scope
    before: Job | None
    """None for a config that base does not have."""
    after: Job
    figures: tuple[Mapping[str, str], Mapping[str, str]]
    """The flags of the rung's figures, with their values, in both revisions."""
    extras: tuple[Merged, ...]
    """The merged `extra` of each revision that has one: merging is slow, and a config can have thousands of fields."""

    @classmethod
    def of(
        cls,
        key: Scope,
        before: Job | None,
        after: Job,
        figures: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    ) -> "JobContext":
        """Return the context of a config, of which the base may have no job."""
        jobs = (job for job in (before, after) if job and job.options.get("extra"))
        return cls(key, before, after, figures, tuple(map(merged_request_body, jobs)))

    @property
    def has_other_target(self) -> bool:
        """True if the fields of the config have other names than before."""
        return self.before is not None and self.before.target != self.after.target

    def is_extra(self, path: KeyPath) -> bool:
        """Return True if `extra` sets the field at a path, in either revision."""
        return any(merged.source(indexed(merged.body, path)) is not None for merged in self.extras)

    def concrete(self, value: Any) -> Any:
        """Return a text with the config's environment and size instead of placeholders."""
        if not isinstance(value, str) or "<" not in value:
            return value
        return value.replace(ENVIRONMENT, self.key.environment).replace(SIZE, self.key.size)

    def is_explained(self, change: Change) -> bool:
        """Return True if another statement or the table of rungs explains a changed field.

        A field that `extra` sets is not explained by the spec's other settings.
        """
        if self.is_extra(change.path):
            return False
        if change.path[:1] == (COMPANIONS,):
            return True  # objects that repeat the secrets, the account and the namespace of the job
        pairs = ((self.before, change.before), (self.after, change.after))
        jobs = [job for job, value in pairs if job and value is not ABSENT]
        origins = [_origin(change.path, job.target) for job in jobs]
        if all(origin and _is_explained(origin) for origin in origins) or self._is_xla_flags(change.path):
            return True
        before, after = (self.concrete(value) for value in (change.before, change.after))
        return self._is_figure(change.path, before, after) or self._follows_names(before, after)

    def _is_xla_flags(self, path: KeyPath) -> bool:
        """Return True for the variable with the flags of the TPU compiler, if the spec has them by generation."""
        is_variable = str(path[-1] if path else "").removeprefix(_ENV_OPTION) == XLA_FLAGS_VARIABLE
        jobs = (job for job in (self.before, self.after) if job)
        return is_variable and any(job.settings.trainer.xla_flags.get(job.slice.generation) for job in jobs)

    def _is_figure(self, path: KeyPath, before: Any, after: Any) -> bool:
        """Return True for a flag with a figure of the rung, which the table of rungs shows."""
        flag = path[-1] if path else ""
        expected = [figures.get(str(flag), ABSENT) for figures in self.figures]
        return expected != [ABSENT, ABSENT] and expected == [before, after]

    def _follows_names(self, before: Any, after: Any) -> bool:
        """Return True if texts differ only in names whose change has a statement of its own, such as the bucket's."""
        if self.before is None or not isinstance(before, str) or not isinstance(after, str):
            return False
        for old, new in zip(_names(self.before), _names(self.after), strict=True):
            if old != new and old and new:
                before, after = before.replace(old, "\0"), after.replace(new, "\0")
        return before == after and "\0" in before


def figure_flags(job: Job | None, training: Training | None) -> dict[str, str]:
    """Return the flags of a rung's figures with their values."""
    if job is None or training is None:
        return {}
    flags = ((flag_name(training, key), text) for key, text in rung_figures(job.rung))
    return {f"--{flag}": text for flag, text in flags if flag is not None}


def _is_explained(origin: Origin) -> bool:
    return origin.kind in _DERIVED or origin.detail == _LABELS or (origin.kind == "spec" and is_compared(origin.detail))


@lru_cache(maxsize=8192)
def _origin(path: KeyPath, target: str) -> Origin | None:
    """Return the origin of a field; that of the command line or script for a flag, a word or a line in it."""
    origins = target_named(target).ORIGINS.items()
    if origin := first_match(origins, path) or first_match(origins, (*path, 0)):  # a list counts as one value
        return origin
    for end in range(len(path) - 1, 0, -1):
        if origin := first_match(origins, path[:end]):
            # Flags and variables of a generated script are the program's own, its other lines are the target's.
            is_own = origin.kind == "rule" and str(path[-1]).startswith((FLAG, ORDER))
            return Origin("figure", "") if is_own else origin
    return None


def _names(job: Job) -> tuple[str | None, ...]:
    """Return the names that other values contain, the longest first."""
    environment = job.environment
    account = account_id(name=job.project, environment=environment.name)
    return (job.job_dir, job.account, job.bucket, job.name, account, job.zone, environment.project, environment.region)
