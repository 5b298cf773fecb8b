"""Compare jobs that differ in their target: the request bodies of two services have hardly a field in common."""

from collections.abc import Iterable
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.config_diff import Difference, config_difference
from tpucfg.changes.revision_facts import job_facts
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.plan import Job
from tpucfg.text_format import dotted

_ACCOUNT: Final = "service_account"
_EXTRA: Final = "extra"
_NO_LIMITS: Final = (True, "default")
"""Addresses and a network that a host has even without a setting."""
_OWN_KINDS: Final = ("target", "option", "field", "machine type", "topology", "zone")
"""The kinds of facts that only one service has, or that are compared in another form."""
_WORKED_OUT: Final = ("figure", "argument", "secret")
"""The kinds of facts that are compared as the program gets them."""


def job_difference(before: Iterable[Job], after: Iterable[Job]) -> Difference:
    """Return the difference between the jobs of two targets.

    Rendering compares each config with its job, so equal jobs start the same program with the same arguments,
    variables, secrets and mounts on as many hosts. Of the settings below `targets`, the account is part of it, and what
    limits or adds to the hosts: a closed network, tags, disks. Of `extra`, only its presence can be compared.
    """
    old, new = ({config_key(job): {**_job_data(job), **_host_data(job)} for job in jobs} for jobs in (before, after))
    return config_difference(old, new)._replace(noun="job")


def revision_difference(before: CompiledRevision, after: CompiledRevision) -> Difference:
    """Return the difference between two revisions: of their configs, or of a job if it moves to another target."""
    old, new = before.jobs, after.jobs
    moved = [key for key in old.keys() & new.keys() if old[key].target != new[key].target]
    old_jobs, new_jobs = (
        {key: {"target": jobs[key].target, **_job_data(jobs[key]), **_options(jobs[key])} for key in moved}
        for jobs in (old, new)
    )
    return config_difference({**before.configs, **old_jobs}, {**after.configs, **new_jobs})


def own_settings(jobs: Iterable[Job]) -> list[str]:
    """Return the keys of the settings of the jobs' targets that are not compared: another target does not read them."""
    return sorted(
        {
            dotted(("targets", job.target, key))
            for job in jobs
            for key in job.options
            if key == _EXTRA or key not in (_ACCOUNT, *TARGET_FACTS[job.target].host_settings)
        }
    )


def _options(job: Job) -> dict[str, Any]:
    return {"targets": {job.target: dict(job.options)}} if job.options else {}


def _host_data(job: Job) -> dict[str, Any]:
    """Return the settings of the hosts that limit or add something, so that defaults of two targets are equal."""
    settings = TARGET_FACTS[job.target].host_settings
    data: dict[str, Any] = {}
    for fact in job_facts(job):
        kind, *name = fact.name
        if kind == "field" and _EXTRA in settings:
            data[_EXTRA] = "fields of the service"
        elif kind == "option" and name[0] in settings and name != [_ACCOUNT] and fact.value not in _NO_LIMITS:
            data[dotted(name)] = fact.value
    return data


def _job_data(job: Job) -> dict[str, Any]:
    """Return the facts of a job that every target has, as plain data; some as the program gets them."""
    # On gke, the setting is the Kubernetes account, which acts as the one of the stack.
    own_account = None if TARGET_FACTS[job.target].runs_pods else job.options.get(_ACCOUNT)
    data: dict[str, Any] = {
        "project": job.environment.project,
        "zone": job.zone,
        "account": own_account or job.account,
        "job_dir": job.job_dir,
        "hosts": job.slice.hosts,
        "args": [*job.args],
        "secrets": {
            secret.variable: f"projects/{secret.project}/secrets/{secret.name}/versions/{secret.version}"
            for secret in job.secrets
        },
    }
    for fact in job_facts(job):
        kind, *name = fact.name
        if kind not in (*_OWN_KINDS, *_WORKED_OUT):
            data[dotted([kind, *name])] = fact.value
    return {key: value for key, value in data.items() if value not in (None, [], {})}
