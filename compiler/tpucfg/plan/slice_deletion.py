"""The permissions with which a job deletes its own slice, and the condition of IAM that limits them.

Cloud TPU has no policy on a single node or queued resource, so a role with these permissions reaches every TPU of its
project: https://cloud.google.com/tpu/docs/iam. On Compute Engine it reaches every group, and of the instances those of
the condition. The other services end the slice themselves.
"""

import json
from collections.abc import Iterable

from tpucfg.catalog.target_facts import TARGET_FACTS, NamedResource
from tpucfg.spec.settings import Settings


def deletes_its_slice(target: str, settings: Settings) -> bool:
    """Return True if a job deletes its slice itself, at the end of its program or of its longest run."""
    return bool(TARGET_FACTS[target].deletion_permissions) and settings.trainer.max_run_duration is not None


def deletion_permissions(target: str, hosts: Iterable[int]) -> tuple[str, ...]:
    """Return the permissions with which jobs on slices of these numbers of hosts delete their own slice."""
    facts = TARGET_FACTS[target]
    one_host = facts.one_host_deletion_permissions or facts.deletion_permissions
    needed = (one_host if count == 1 else facts.deletion_permissions for count in hosts)
    return tuple(dict.fromkeys(permission for permissions in needed for permission in permissions))


def deletion_condition(target: str, names: Iterable[str]) -> str | None:
    """Return an expression that limits the deletion of slices of one host to those with certain names.

    It is true for every other type of resource, as the same grant deletes groups, whose names no condition can read:
    https://cloud.google.com/iam/docs/configuring-resource-based-access#extract-resource-name.

    Args:
        target: The environment's target.
        names: The names of the jobs on one host; a job's own name may continue with the id of its run.

    Returns:
        The expression; None without such jobs, or if the service has no condition for them.
    """
    resource = TARGET_FACTS[target].one_host_resource
    prefixes = [*dict.fromkeys(names)]
    if resource is None or not prefixes:
        return None
    terms = [f"resource.type != {_quoted(resource.type)}", *(_starts_with(resource, prefix) for prefix in prefixes)]
    return " || ".join(terms)


def _starts_with(resource: NamedResource, prefix: str) -> str:
    return f"resource.name.extract({_quoted(resource.template)}).startsWith({_quoted(prefix)})"


def _quoted(text: str) -> str:
    """Return a text as a string of CEL, which knows the escapes of JSON.

    https://github.com/google/cel-spec/blob/master/doc/langdef.md#string-and-bytes-values
    """
    return json.dumps(text)
