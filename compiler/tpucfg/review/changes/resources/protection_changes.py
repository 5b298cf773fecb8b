"""Changes that make a resource of any type easier to lose: its guards, and what happens to it when it is removed."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.resources import Resource
from tpucfg.review.changes.resources.guards import (
    Guard,
    format_duration,
    is_false,
    is_true,
    one_of,
    seconds,
    weakened_guards,
)
from tpucfg.review.changes.resources.resource_change import Step

_SECRET_VERSIONS: Final = frozenset(
    ("gcp:secretmanager/secretVersion:SecretVersion", "gcp:secretmanager/regionalSecretVersion:RegionalSecretVersion")
)
_REPOSITORY: Final = "gcp:artifactregistry/repository:Repository"
_UNPROTECTED: Final = "is no longer protected against deletion by its service"
_DELETION_PROTECTION: Final = one_of((False, "UNPROTECTED"), (None,), (True, "PROTECTED"))
"""Without the input, the provider has a default that differs by type."""
_GUARDS: Final = (
    Guard(("forceDestroy",), is_false(), "would be deleted together with everything in it", Risk.DESTRUCTIVE),
    Guard(("forceDelete",), is_false(), "would be deleted together with everything in it", Risk.DESTRUCTIVE),
    Guard(("deleteContentsOnDestroy",), is_false(), "would be deleted together with its tables", Risk.DESTRUCTIVE),
    Guard(
        ("deletionPolicy",),
        # Source: the provider's description of the input, which every type has.
        one_of((None, "DELETE"), ("ABANDON",), ("PREVENT",)),
        "is deleted from the cloud when it is removed, previously it was kept",
        Risk.DESTRUCTIVE,
    ),
    Guard(("deletionProtection",), _DELETION_PROTECTION, _UNPROTECTED, Risk.DESTRUCTIVE),
    Guard(("deletionProtectionEnabled",), _DELETION_PROTECTION, _UNPROTECTED, Risk.DESTRUCTIVE),
    Guard(("enableDropProtection",), _DELETION_PROTECTION, _UNPROTECTED, Risk.DESTRUCTIVE),
    Guard(("deleteProtection",), _DELETION_PROTECTION, _UNPROTECTED, Risk.DESTRUCTIVE),
    Guard(("settings", "deletionProtectionEnabled"), _DELETION_PROTECTION, _UNPROTECTED, Risk.DESTRUCTIVE),
    Guard(
        ("deleteProtectionState",),
        one_of(
            (None, "DELETE_PROTECTION_STATE_UNSPECIFIED", "DELETE_PROTECTION_DISABLED"), ("DELETE_PROTECTION_ENABLED",)
        ),
        _UNPROTECTED,
        Risk.DESTRUCTIVE,
    ),
    Guard(("settings", "backupConfiguration", "enabled"), is_true(), "is no longer backed up", Risk.DESTRUCTIVE),
    Guard(
        ("settings", "backupConfiguration", "pointInTimeRecoveryEnabled"),
        is_true(),
        "can no longer be restored to a point in time",
        Risk.DESTRUCTIVE,
    ),
    *(
        Guard((key,), seconds(), "keeps what is deleted for {2}, previously for {1}", Risk.DESTRUCTIVE, format_duration)
        for key in ("destroyScheduledDuration", "versionDestroyTtl", "messageRetentionDuration")
    ),
    Guard(("versionRetentionPeriod",), seconds(3_600), "keeps old versions for {2}", Risk.DESTRUCTIVE, format_duration),
    *(
        Guard((key,), lambda value: float(value is None), "expires with its content at {2}", Risk.DESTRUCTIVE)
        for key in ("expireTime", "expirationTime", "ttl", "defaultTableExpirationMs", "defaultPartitionExpirationMs")
    ),
    Guard(("disabled",), is_false(), "is disabled", Risk.CAUTION),
)
"""Guards that resources of every type can have; the names are the provider's."""
_VERSION_GUARDS: Final = (Guard(("enabled",), is_true(default=True), "can no longer be read", Risk.CAUTION),)


def protection_statements(step: Step) -> Iterator[Statement]:
    """Yield what a change does to the guards of a resource that exists before and after it."""
    before, after = step.before, step.after
    if before is None or after is None or step.op == "same":
        return
    guards = (*_GUARDS, *(_VERSION_GUARDS if after.type in _SECRET_VERSIONS else ()))
    yield from weakened_guards(guards, before.inputs, after.inputs)
    yield from _cleanup_statements(before, after)


def _cleanup_statements(before: Resource, after: Resource) -> Iterator[Statement]:
    """Yield a change to the policies by which a registry deletes images."""
    if after.type == _REPOSITORY and _active_cleanup(after.inputs) not in ([], _active_cleanup(before.inputs)):
        yield Statement("deletes artifacts by other rules than before ({})", ("cleanupPolicies",), Risk.DESTRUCTIVE)


def _active_cleanup(inputs: Mapping[str, Any]) -> Any:
    """Return the policies that delete artifacts; a dry run deletes nothing."""
    return [] if inputs.get("cleanupPolicyDryRun") is True else inputs.get("cleanupPolicies") or []
