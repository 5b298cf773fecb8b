"""The job of a config in both revisions: what explains a changed field, and what makes it dangerous."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.diff.change import ABSENT, Change, ConfigKey
from tpucfg.diff.command_lines import FLAG
from tpucfg.diff.config_diff import ENVIRONMENT, SIZE
from tpucfg.diff.tree_diff import ORDER
from tpucfg.plan import Job
from tpucfg.plan.job import XLA_FLAGS_VARIABLE
from tpucfg.plan.naming import account_id
from tpucfg.plan.rung import flag_name, rung_figures
from tpucfg.review.changes.jobs.job_settings import is_compared
from tpucfg.review.changes.statements import Risk
from tpucfg.spec.project import Training
from tpucfg.targets import Origin, target_named
from tpucfg.targets.extra import Merged, merged_request_body
from tpucfg.targets.interface import COMPANIONS
from tpucfg.targets.list_items import indexed
from tpucfg.targets.patterns import origin_of
from tpucfg.yamldoc.document import KeyPath

_DERIVED: Final = ("catalog", "rule")
"""Origins of fields that follow from the size, the names and the target, whose changes have statements of their own."""
_LABELS: Final = "environments.<env>.labels"
_ENV_OPTION: Final = "--env."
_REFERENCE: Final = re.compile(r"(?<![A-Za-z0-9+.-])(?:[a-z][a-z0-9+.-]{1,20}://|/gcs/)[^\s/'\"?#,;)]+", re.IGNORECASE)
"""The service and the bucket or host of an address: `gs://bucket`, `https://example.com`."""
_ADDRESS: Final = re.compile(_REFERENCE.pattern + r"(?:/[^\s'\"?#,;)]*)?", re.IGNORECASE)
"""A whole address, with its path."""
_DIGEST: Final = "@sha256:"
_PROJECT_REGISTRY: Final = re.compile(r"[a-z0-9-]+-docker\.pkg\.dev|(?:[a-z0-9-]+\.)?gcr\.io")
_DEFAULT_REGISTRY: Final = "docker.io"


class Verdict(NamedTuple):
    """The risk of a changed field."""

    risk: Risk = Risk.NONE
    consequence: str = ""
    """The meaning of the change, as a clause with `{}` for each value."""
    values: tuple[str, ...] = ()


class JobContext(NamedTuple):
    """A config in both revisions."""

    key: ConfigKey
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
        key: ConfigKey,
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


def own_account(job: Job) -> str:
    """Return the account that the environment's stack creates for the jobs, as the config names it."""
    if TARGET_FACTS[job.target].runs_pods:
        return account_id(name=job.project, environment=job.environment.name)
    return job.account


def account_verdict(after: Any, context: JobContext) -> Verdict:
    """Judge the account that jobs run as."""
    if context.concrete(after) == own_account(context.after):
        if context.before and context.has_other_target and context.before.options.get("service_account"):
            return Verdict(Risk.CAUTION, "the settings of the new target name none, so jobs run as the stack's own")
        return Verdict()
    if after is ABSENT:
        return Verdict(Risk.ACCESS, "jobs run as the service's default account")
    return Verdict(Risk.ACCESS, "jobs run as an account that the stack does not create")


def reference_verdict(before: Any, after: Any, context: JobContext, known: frozenset[str] = frozenset()) -> Verdict:
    """Judge the addresses in an argument or a variable: another bucket or host can receive or replace data."""
    if isinstance(after, str) and "/" not in after:
        return Verdict()
    old, new = ({*references(context.concrete(value))} for value in (before, after))
    own = {f"gs://{context.after.bucket}", f"/gcs/{context.after.bucket}"}
    others = sorted(new - old - own - known)
    if not others:
        return _parent_verdict(context.concrete(before), context.concrete(after))
    noun = "is not the environment's bucket" if others[0].startswith(("gs://", "/gcs/")) else "is a new address"
    more = f", and {len(others) - 1:,} more" if len(others) > 1 else ""
    return Verdict(Risk.CAUTION, f"{{}} {noun}{more}", (others[0],))


def _parent_verdict(before: Any, after: Any) -> Verdict:
    """Judge the steps to a parent folder in an address: `/gcs/mine/../other` is a file of another bucket."""
    climbing = [address for address in _addresses(after) if ".." in address.split("/")]
    if not climbing or climbing[0] in _addresses(before):
        return Verdict()
    return Verdict(Risk.CAUTION, "{} leads out of its folder, and can lead to another bucket", (climbing[0],))


def _addresses(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    return [address for text in texts if isinstance(text, str) for address in _ADDRESS.findall(text)]


def references(value: Any) -> Iterator[str]:
    """Yield the services and hosts of the addresses in a value."""
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if isinstance(text, str) and "/" in text:
            yield from _REFERENCE.findall(text)


def image_verdict(before: str | None, after: str | None, known: frozenset[str] = frozenset()) -> Verdict:
    """Judge the source of an image: another registry or project, or a version that can change.

    Args:
        before: the image before, if there was one.
        after: the image after.
        known: registries that need no caution.
    """
    if not after:
        return Verdict()
    consequences, values = [], []
    registry = registry_of(after)
    if registry not in known and (before is None or registry_of(before) != registry):
        consequences.append("code comes from {}" + (" instead of {}" if before else ""))
        values += [registry, *([registry_of(before)] if before else [])]
    if before and _DIGEST in before and _DIGEST not in after:
        consequences.append("the digest that fixed its content is gone")
    elif is_mutable(after) and not (before and is_mutable(before)):
        consequences.append("its tag can mean another image at any time")
    return Verdict(Risk.CAUTION, "; ".join(consequences), tuple(values)) if consequences else Verdict()


def registry_of(image: str) -> str:
    """Return the host of an image and the project or owner in it."""
    host, separator, rest = image.partition("/")
    if not separator or not ("." in host or ":" in host or host == "localhost"):
        host, rest = _DEFAULT_REGISTRY, image
    parts = rest.split("/")
    # The project of a domain has two parts: example.com/my-project.
    count = 2 if _PROJECT_REGISTRY.fullmatch(host) and "." in parts[0] else 1
    return "/".join([host, *parts[: min(count, len(parts) - 1)]])


def is_mutable(image: str) -> bool:
    """Return True if an image has neither a digest nor a version of its own."""
    name = image.rpartition("/")[2]
    return _DIGEST not in image and (":" not in name or name.endswith(":latest"))


def _is_explained(origin: Origin) -> bool:
    return origin.kind in _DERIVED or origin.detail == _LABELS or (origin.kind == "spec" and is_compared(origin.detail))


@lru_cache(maxsize=8192)
def _origin(path: KeyPath, target: str) -> Origin | None:
    """Return the origin of a field; that of the command line or script for a flag, a word or a line in it."""
    origins = target_named(target).ORIGINS
    if origin := origin_of(origins, path) or origin_of(origins, (*path, 0)):  # a list counts as one value
        return origin
    for end in range(len(path) - 1, 0, -1):
        if origin := origin_of(origins, path[:end]):
            # Flags and variables of a generated script are the program's own, its other lines are the target's.
            is_own = origin.kind == "rule" and str(path[-1]).startswith((FLAG, ORDER))
            return Origin("figure", "") if is_own else origin
    return None


def _names(job: Job) -> tuple[str | None, ...]:
    """Return the names that other values contain, the longest first."""
    environment = job.environment
    account = account_id(name=job.project, environment=environment.name)
    return (job.job_dir, job.account, job.bucket, job.name, account, job.zone, environment.project, environment.region)
