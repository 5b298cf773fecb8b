"""Verdicts on changed fields of a job: accounts, addresses and images that a reviewer has to look at."""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.facts import ABSENT
from tpucfg.changes.statements import Risk
from tpucfg.plan import Job
from tpucfg.plan.naming import account_id
from tpucfg.review.changes.jobs.job_context import JobContext

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
