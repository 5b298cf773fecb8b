"""Rules about the stacks of one command: names that two of them derive, and grants that two of them declare."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import Allowance, Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import grouped
from tpucfg.plan.identities import Identity, identities, image_pulls
from tpucfg.plan.job import Job
from tpucfg.plan.naming import bucket_of
from tpucfg.spec import Environment, Project
from tpucfg.text_format import dotted, listed

_MAX_SHOWN: Final = 3
"""The names or grants that a finding lists."""
_OTHER_STACK: Final = "the other stack"


class DeclaredGrant(NamedTuple):
    """A grant as IAM stores it, once for all stacks that declare it."""

    what: str
    member: str
    stays: bool = False
    """True if it stays when a stack no longer declares it, because other stacks can need it."""

    @property
    def text(self) -> str:
        """The grant as a message names it."""
        return f"{self.what} to {self.member}"


class StackUse(NamedTuple):
    """The names and grants of an environment's stack: all that the rules need, as hundreds of specs are not kept."""

    environment: str
    target: str
    created_bucket: str
    """The bucket that it creates; empty if that exists already."""
    names: frozenset[str]
    """The e-mail of the account that it creates, and the names of its jobs, in its Google project."""
    grants: frozenset[DeclaredGrant]
    location: Location
    allow: Mapping[str, Allowance]

    @property
    def text(self) -> str:
        """The environment, for another one's finding."""
        return f"{self.environment} in {self.location.file}"


def stack_uses(project: Project, jobs: Sequence[Job]) -> Iterator[StackUse]:
    """Yield what the stack of each environment with jobs names and grants."""
    by_environment = grouped((job.environment.name, job) for job in jobs)
    for environment in project.environments.values():
        if own := by_environment.get(environment.name):
            accounts = identities(project, environment)
            yield StackUse(
                environment.name,
                environment.target,
                bucket_of(project, environment) if environment.creates_bucket else "",
                frozenset(_names(environment, accounts, own)),
                frozenset(_grants(project, environment, accounts, own)),
                project.document.key_location(environment.path),
                project.allow,
            )


def _names(
    environment: Environment, accounts: Iterable[Identity], jobs: Iterable[Job]
) -> Iterator[str]:
    yield from (identity.email for identity in accounts if identity.is_created)
    yield from (f"{environment.project}/{environment.target}/{job.name}" for job in jobs)


def _grants(
    project: Project, environment: Environment, accounts: Iterable[Identity], jobs: Sequence[Job]
) -> Iterator[DeclaredGrant]:
    bucket, facts = bucket_of(project, environment), TARGET_FACTS[environment.target]
    for identity in accounts:
        if not identity.is_created:
            for url in (f"gs://{bucket}", *environment.reads):
                yield DeclaredGrant(f"the objects of {url}", identity.email)
            for secret in identity.secrets:
                yield DeclaredGrant(f"the secret {secret.project}/{secret.name}", identity.email)
    for email, repository in image_pulls(jobs):
        path = "/".join(repository)
        yield DeclaredGrant(f"the images of {path}", email, facts.image_puller == "nodes")
    if facts.agent_uses_bucket:
        agent = f"the TPU service agent of {environment.project}"
        yield DeclaredGrant(f"the objects of gs://{bucket}", agent, stays=True)
    if environment.kms_key and environment.creates_bucket:
        agent = f"the storage agent of {environment.project}"
        yield DeclaredGrant(f"the key {environment.kms_key}", agent, stays=True)


def shared_stack_findings(uses: Sequence[StackUse]) -> Iterator[Finding]:
    """Yield the findings about each stack with names or grants of an earlier one."""
    owners: dict[str | DeclaredGrant, int] = {}
    for number, use in enumerate(uses):
        values: list[str | DeclaredGrant] = [*sorted(use.names), *sorted(use.grants)]
        for first, shared in grouped(
            (owners.setdefault(value, number), value) for value in values
        ).items():
            if first != number:
                yield from _shared_findings(uses[first], use, shared)


def _shared_findings(
    first: StackUse, second: StackUse, shared: Sequence[str | DeclaredGrant]
) -> Iterator[Finding]:
    names = [value for value in shared if isinstance(value, str)]
    grants = [
        value for value in shared if isinstance(value, DeclaredGrant) and value.member not in names
    ]
    # Two that create one bucket have a finding of their own.
    if names and not (first.created_bucket and first.created_bucket == second.created_bucket):
        yield _equal_names(first, second, names)
    for finding, stays in ((_revoked_grants, False), (_staying_grants, True)):
        if texts := [grant.text for grant in grants if grant.stays == stays]:
            yield finding(first, second, listed(texts, _MAX_SHOWN)).allowed_by(second.allow)


def _equal_names(first: StackUse, second: StackUse, names: Sequence[str]) -> Finding:
    message = (
        f"{second.environment} has names of {first.text}: {listed(names, _MAX_SHOWN)}; the second `pulumi up` or "
        "`tpucfg submit` would find them taken"
    )
    related = ((first.location, "the other environment"),)
    hint = "give one of the specs another name, or its environment another name or project"
    return Finding.of("TPU136", message, second.location, help=hint, related=related)


def _revoked_grants(first: StackUse, second: StackUse, grants: str) -> Finding:
    message = (
        f"{second.environment} and {first.text} both grant {grants}: IAM has one entry, so the stack that is destroyed "
        "first takes it from the other, too"
    )
    path = dotted(("environments", second.environment, "targets", second.target, "service_account"))
    hint = f"set {path} to an account of its own"
    related = ((first.location, _OTHER_STACK),)
    return Finding.of("TPU137", message, second.location, help=hint, related=related)


def _staying_grants(first: StackUse, second: StackUse, grants: str) -> Finding:
    message = (
        f"{second.environment} and {first.text} both grant {grants}: "
        "it stays when one of them no longer declares it"
    )
    related = ((first.location, _OTHER_STACK),)
    return Finding.of("TPU137", message, second.location, level="note", related=related)
