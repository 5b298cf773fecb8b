"""Compare jobs that differ in their target: the request bodies of two services have hardly a field in common."""

from collections.abc import Iterable
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.config_diff import Difference, config_difference
from tpucfg.changes.facts import Scope
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.plan import Job
from tpucfg.plan.rules.unused_settings import NO_LOSS, OWN_FIELDS
from tpucfg.spec.settings import Capacity, Secret
from tpucfg.text_format import dotted

_ACCOUNT: Final = "service_account"


def job_difference(before: Iterable[Job], after: Iterable[Job]) -> Difference:
    """Return the difference between the jobs of two targets.

    Rendering compares each config with its job, so equal jobs start the same program with the same arguments,
    variables, secrets and mounts on as many chips. Of the settings below `targets`, the account is part of it, and what
    limits or adds to the hosts: a closed network, tags, disks. Of `extra`, only its presence can be compared.
    """
    return config_difference(_by_key(before), _by_key(after))._replace(noun="job")


def revision_difference(before: CompiledRevision, after: CompiledRevision) -> Difference:
    """Return the difference between two revisions: of their configs, or of a job if it moves to another target."""
    old, new = before.jobs, after.jobs
    moved = [key for key in old.keys() & new.keys() if old[key].target != new[key].target]
    return config_difference(
        {**before.configs, **{key: _moved_job_data(old[key]) for key in moved}},
        {**after.configs, **{key: _moved_job_data(new[key]) for key in moved}},
    )


def _moved_job_data(job: Job) -> dict[str, Any]:
    return {"target": job.target, **_job_data(job), "targets": {job.target: dict(job.options)} if job.options else {}}


def own_settings(jobs: Iterable[Job]) -> list[str]:
    """Return the keys of the settings of the jobs' targets that are not compared: another target does not read them."""
    return sorted(
        {
            dotted(("targets", job.target, key))
            for job in jobs
            for key in job.options
            if key == OWN_FIELDS or key not in (_ACCOUNT, *TARGET_FACTS[job.target].host_settings)
        }
    )


def _by_key(jobs: Iterable[Job]) -> dict[Scope, Any]:
    return {Scope(job.environment.name, job.size): {**_job_data(job), **_host_data(job)} for job in jobs}


def _host_data(job: Job) -> dict[str, Any]:
    """Return the settings of the hosts that limit or add something, so that defaults of two targets are equal."""
    keys = [key for key in TARGET_FACTS[job.target].host_settings if key != _ACCOUNT]
    values = {key: job.options.get(key) for key in keys}
    data = {key: value for key, value in values.items() if value not in (None, *NO_LOSS.get(key, ()))}
    return {**data, OWN_FIELDS: "fields of the service"} if OWN_FIELDS in data else data


def _job_data(job: Job) -> dict[str, Any]:
    """Return what the plan decides about a job, but the target: plain data, without what is unset.

    The figures are flags in `args`.
    """
    duration = job.max_run_duration
    data = {
        "name": job.name,
        "project": job.environment.project,
        "zone": job.zone,
        "account": _account(job),
        "job_dir": job.job_dir,
        "chips": job.slice.chips,
        "hosts": job.slice.hosts,
        "capacity": capacity_text(job.capacity),
        "restarts": job.restarts,
        "max_run_duration": duration.text if duration else None,
        "image": job.image,
        "worker_image": job.worker_image,
        "package": job.package,
        "module": job.module,
        "runtime": job.runtime,
        "python": job.python,
        "args": [*job.args],
        "env": dict(job.env),
        "secrets": {secret.variable: _secret_text(secret) for secret in job.secrets},
        "mounts": {mount.path: mount.source for mount in job.mounts},
    }
    return {key: value for key, value in data.items() if value not in (None, {}, [])}


def _account(job: Job) -> str:
    # On gke, the setting is the Kubernetes account, which acts as the one of the stack.
    own = None if TARGET_FACTS[job.target].runs_pods else job.options.get(_ACCOUNT)
    return own or job.account


def capacity_text(capacity: Capacity) -> str:
    """Return a capacity with the name of its reservation, if it has one."""
    return f"{capacity.kind} {capacity.reservation}" if capacity.reservation else capacity.kind


def _secret_text(secret: Secret) -> str:
    return f"projects/{secret.project}/secrets/{secret.name}/versions/{secret.version}"
