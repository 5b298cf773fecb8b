"""The condition of IAM under which a job may delete its own slice and no other machine of the project."""

import json
from collections.abc import Iterable

from tpucfg.catalog.target_facts import TARGET_FACTS, NamedResource


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
