"""The grants on each environment's bucket in the cloud, compared with those that its stack declares."""

from tpucfg.changes.revisions import CompiledRevision
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.plan.naming import bucket_of
from tpucfg.review.changes.resources.undeclared_grants import BucketAccess, compare_grants
from tpucfg.review.cloud_files import CloudFiles
from tpucfg.review.preview.policy import BucketPolicy
from tpucfg.review.program_runs import ProgramRuns
from tpucfg.review.review import Review


def with_bucket_access(review: Review, runs: ProgramRuns, cloud: CloudFiles) -> Review:
    """Return the review with the grants of each bucket's policy that the stack does not declare."""
    if not cloud.policies:
        return review
    environments = tuple(
        environment._replace(bucket_access=_bucket_access(review, policy, _declared(policy.environment, runs, cloud)))
        if (policy := cloud.policies.get(environment.environment))
        else environment
        for environment in review.environments
    )
    unknown = sorted({*cloud.policies} - {environment.environment for environment in environments})
    notes = (f"The bucket's policy of {name} is not shown: there is no environment of that name." for name in unknown)
    return review._replace(environments=environments, notes=(*review.notes, *notes))


def _declared(name: str, runs: ProgramRuns, cloud: CloudFiles) -> tuple[Resource, ...] | None:
    """Return the resources of the stack, from the preview if it has all, with members as Google knows them.

    None if they are unknown.
    """
    preview = cloud.previews.get(name)
    if preview and preview.failure is None and preview.is_stream:
        return (*preview.before, *preview.after)
    before, after = (results.get(name) for results in (runs.before, runs.after))
    if not isinstance(after, EnvironmentResources):
        return None
    old = before.resources if isinstance(before, EnvironmentResources) else ()
    return (*old, *after.resources)


def _bucket_access(review: Review, policy: BucketPolicy, declared: tuple[Resource, ...] | None) -> BucketAccess:
    if policy.failure:
        lines = f": {policy.failure.lines[0]}" if policy.failure.lines else ""
        return BucketAccess(problem=f"{policy.failure.reason} ({policy.failure.location}){lines}")
    if not policy.bucket:
        return BucketAccess()
    owners = _buckets(review, policy.environment)
    if owners and policy.bucket not in owners:
        problem = f"the policy is of the bucket {policy.bucket} instead of {' or '.join(owners)}"
        return BucketAccess(problem=problem)
    access = compare_grants(policy.bucket, policy.grants, declared or (), owners.get(policy.bucket, ""))
    if declared is not None:
        return access
    problem = "what the stack declares is unknown; take the preview with PULUMI_ENABLE_STREAMING_JSON_PREVIEW=true"
    public = tuple(grant for grant in access.grants if grant.is_public)
    return access._replace(grants=public, problem=problem)


def _buckets(review: Review, name: str) -> dict[str, str]:
    """Return the Google project of the environment's bucket in each revision by the bucket's name."""
    revisions: tuple[CompiledRevision, ...] = (review.before, review.after)
    projects = [revision.project for revision in revisions if revision.project]
    return {
        bucket_of(project, project.environments[name]): project.environments[name].project
        for project in projects
        if name in project.environments
    }
