"""Rules about the stacks of one command: names that two of them derive, and grants that two of them declare."""

from collections.abc import Iterable, Iterator, Sequence

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import Allowance, Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import grouped
from tpucfg.plan.identities import identities, image_pulls
from tpucfg.plan.job import Job
from tpucfg.plan.naming import bucket_of
from tpucfg.spec import Environment, Project
from tpucfg.text_format import dotted, listed


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
    allow: tuple[tuple[str, Allowance], ...]

    @property
    def text(self) -> str:
        """The environment, for another one's finding."""
        return f"{self.environment} in {self.location.file}"


def stack_uses(project: Project, jobs: Sequence[Job]) -> Iterator[StackUse]:
    """Yield what the stack of each environment with jobs names and grants."""
    for environment in project.environments.values():
        own = [job for job in jobs if job.environment == environment]
        if own:
            yield StackUse(
                environment.name,
                environment.target,
                bucket_of(project, environment) if environment.creates_bucket else "",
                frozenset(_names(project, environment, own)),
                frozenset(_grants(project, environment, own)),
                project.document.key_location(environment.path),
                tuple(project.allow.items()),
            )


def _names(project: Project, environment: Environment, jobs: Iterable[Job]) -> Iterator[str]:
    for identity in identities(project, environment):
        if identity.is_created:
            yield identity.email
    for job in jobs:
        yield f"{environment.project}/{environment.target}/{job.name}"


def _grants(
    project: Project, environment: Environment, jobs: Sequence[Job]
) -> Iterator[DeclaredGrant]:
    bucket, facts = bucket_of(project, environment), TARGET_FACTS[environment.target]
    for identity in identities(project, environment):
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
    owners: dict[str | DeclaredGrant, StackUse] = {}
    for use in uses:
        earlier = grouped(
            (owners.setdefault(each, use), each) for each in sorted(use.names) + sorted(use.grants)
        )
        for first, shared in earlier.items():
            if first is not use:
                yield from _shared_findings(first, use, shared)


def _shared_findings(
    first: StackUse, second: StackUse, shared: Sequence[str | DeclaredGrant]
) -> Iterator[Finding]:
    names = [each for each in shared if isinstance(each, str)]
    # Two that create one bucket have a finding of their own.
    if names and not (first.created_bucket and first.created_bucket == second.created_bucket):
        yield _equal_names(first, second, names)
    grants = (each for each in shared if isinstance(each, DeclaredGrant))
    for alike in _by_fate(grant for grant in grants if grant.member not in names):
        yield _equal_grants(first, second, alike).allowed_by(dict(second.allow))


def _by_fate(grants: Iterable[DeclaredGrant]) -> Iterator[list[DeclaredGrant]]:
    ordered = sorted(grants)
    for stays in (False, True):
        if chosen := [grant for grant in ordered if grant.stays == stays]:
            yield chosen


def _equal_names(first: StackUse, second: StackUse, names: Sequence[str]) -> Finding:
    message = (
        f"{second.environment} has names of {first.text}: {listed(names, 3)}; the second `pulumi up` or "
        "`tpucfg submit` would find them taken"
    )
    related = ((first.location, "the other environment"),)
    hint = "give one of the specs another name, or its environment another name or project"
    return Finding.of("TPU136", message, second.location, help=hint, related=related)


def _equal_grants(first: StackUse, second: StackUse, grants: Sequence[DeclaredGrant]) -> Finding:
    both = f"{second.environment} and {first.text} both grant {listed([grant.text for grant in grants], 3)}"
    related = ((first.location, "the other stack"),)
    if grants[0].stays:
        message = f"{both}: it stays when one of them no longer declares it"
        return Finding.of("TPU137", message, second.location, level="note", related=related)
    message = f"{both}: IAM has one entry, so the stack that is destroyed first takes it from the other, too"
    path = dotted(("environments", second.environment, "targets", second.target, "service_account"))
    hint = f"set {path} to an account of its own"
    return Finding.of("TPU137", message, second.location, help=hint, related=related)
