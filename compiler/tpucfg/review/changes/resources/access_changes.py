"""Changes of access that are no grants: roles, keys, federated identities, and rules that deny access."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.grants import short_name
from tpucfg.infra.resources import Resource
from tpucfg.infra.rules.access import ACCOUNT_KEY, CUSTOM_ROLE, HMAC_KEY
from tpucfg.infra.rules.roles import power_of_permission
from tpucfg.redaction import SECRET
from tpucfg.review.changes.resources.guards import Guard, is_false, is_set, weakened_guards
from tpucfg.review.changes.resources.resource_change import REMOVING_OPS, UNKNOWN, Step
from tpucfg.text_format import listed

_SERVICE: Final = "gcp:projects/service:Service"
_ACCOUNT: Final = "gcp:serviceaccount/account:Account"
_KEYS: Final = (ACCOUNT_KEY, HMAC_KEY, "gcp:projects/apiKey:ApiKey")
_PROVIDER: Final = re.compile(r"^gcp:iam/work(load|force)(IdentityPool|Pool)Provider:")
_RESTRICTION: Final = re.compile(
    r"^gcp:(iam/(denyPolicy|principalAccessBoundaryPolicy|[a-z]+PolicyBinding)"
    r"|(projects|folder)/organizationPolicy|organizations/policy|orgpolicy/(policy|customConstraint)"
    r"|accesscontextmanager/(servicePerimeter|accessLevel)[A-Za-z]*):"
)
"""Types that deny access or constrain a project; without them, more is possible."""
_AUDIT: Final = re.compile(r"^gcp:(projects|folder|organizations)/i[aA][mM]AuditConfig:")
_OTHER_ACCESS: Final = re.compile(
    r"^gcp:(privilegedaccessmanager/entitlement|iam/[a-z]+AccessPolicy|accesscontextmanager/gcpUserAccessBinding"
    r"|iam/oauthClient(Credential)?|iam/workforcePoolProviderKey|identityplatform/[A-Za-z]+|iap/[A-Za-z]+):"
)
"""Types that give access by other means than a grant of a role."""
_FEDERATION: Final = (
    Guard(("attributeCondition",), is_set, "admits every identity of its issuer, no longer only {1}", Risk.ACCESS),
    Guard(("disabled",), lambda value: float(value is True), "admits identities again", Risk.ACCESS),
)
_ACCOUNT_GUARDS: Final = (Guard(("disabled",), lambda value: float(value is True), "can be used again", Risk.ACCESS),)
_SERVICE_GUARDS: Final = (
    Guard(("disableOnDestroy",), is_false(), "is disabled for the whole project when it is removed", Risk.CAUTION),
    Guard(("disableDependentServices",), is_false(), "disables services that depend on it too", Risk.CAUTION),
)
_ADMITTING: Final = ("attributeCondition", "attributeMapping", "oidc", "saml", "aws")
"""Inputs that decide which identities a provider admits."""
_MAX_PERMISSIONS: Final = 6
_PROJECT_GRANT: Final = "gcp:projects/iAMMember:IAMMember"
_DELETION_ROLE: Final = re.compile(r"^projects/[^/]+/roles/tpu\.[^/]+$")
"""The custom role by which a job deletes its own slice: see `deletion_role_id`."""
_DELETION: Final = frozenset(
    permission
    for facts in TARGET_FACTS.values()
    for permission in (*facts.deletion_permissions, *facts.one_host_deletion_permissions)
)
"""The permissions by which slices delete themselves at their deadline and after the program's end."""


def access_statements(step: Step) -> Iterator[Statement]:
    """Yield what a change means for access, apart from its grants."""
    resource = step.after or step.before
    if resource is None or step.op == "same":
        return
    for applies, statements in _STATEMENTS:
        if applies(resource.type):
            yield from statements(step)


def judges_access(resource_type: str) -> bool:
    """Return True for a type about whose access this module has a rule."""
    return any(applies(resource_type) for applies, _ in _STATEMENTS)


def _role(step: Step) -> Iterator[Statement]:
    """Yield the permissions that a custom role gains, and those that running slices lose.

    The first permissions of a new role matter only where it is granted.
    """
    if step.before is None:
        return
    before = _texts(step.before.inputs.get("permissions"))
    after = _texts(step.after.inputs.get("permissions")) if step.after else []
    lost = [permission for permission in before if permission in _DELETION and permission not in after]
    if lost and not (step.after is None and step.before.retain) and _is_known(step.after):
        yield _lost_deletion("loses {}", listed(lost, _MAX_PERMISSIONS))
    if step.after is None:
        return
    added = [permission for permission in after if permission not in before]
    if added:
        # A long list is cut, so that permissions to take over accounts come first.
        added.sort(key=lambda permission: not power_of_permission(permission))
        text = "gives everyone who has the role {} ({})"
        yield Statement(text, (listed(added, _MAX_PERMISSIONS), "permissions"), Risk.ACCESS)


def _is_known(role: Resource | None) -> bool:
    return role is None or role.inputs.get("permissions") not in (SECRET, UNKNOWN)


def _lost_deletion(event: str, value: str) -> Statement:
    consequence = "slices that are running can no longer delete themselves; let bounded ones end first"
    return Statement(f"{event}: {consequence}", (value,), Risk.CAUTION)


def _deletion_grant(step: Step) -> Iterator[Statement]:
    """Yield the account that loses the role by which its running slices delete themselves."""
    before, after = step.before, step.after
    if before and after and _DELETION_ROLE.search(str(before.inputs.get("role"))):
        member = before.inputs.get("member")
        if member != after.inputs.get("member"):
            yield _lost_deletion("takes the role from {}", str(member))


def _key(step: Step) -> Iterator[Statement]:
    if step.after is None:
        return
    if step.before is None or step.op == "replace":
        keys = ("serviceAccountId", "serviceAccountEmail", "project")
        account = next((value for key in keys if (value := step.after.inputs.get(key))), "an unknown account")
        yield Statement(
            "is a new key: a copy of it acts as {}, from anywhere", (short_name(str(account)),), Risk.ACCESS
        )


def _provider(step: Step) -> Iterator[Statement]:
    """Yield how a provider of federated identities admits more of them."""
    before, after = step.before, step.after
    if after is None:
        return
    if before is None:
        condition = after.inputs.get("attributeCondition")
        text = "admits identities from outside of Google Cloud: {}" if condition else "admits every identity of {}"
        issuer = _issuer(after.inputs)
        yield Statement(text, (str(condition) if condition else issuer,), Risk.ACCESS)
        return
    yield from weakened_guards(_FEDERATION, before.inputs, after.inputs)
    for key in _ADMITTING:
        value = after.inputs.get(key)
        if value not in (None, before.inputs.get(key)):
            yield Statement("admits other identities than before ({})", (key,), Risk.ACCESS)


def _issuer(inputs: Mapping[str, Any]) -> str:
    oidc = inputs.get("oidc")
    issuer = oidc.get("issuerUri") if isinstance(oidc, dict) else None
    return str(issuer or "its issuer")


def _other_access(step: Step) -> Iterator[Statement]:
    if step.after is not None:
        verb = "changes who" if step.before else "decides who"
        yield Statement(f"{verb} has access, by other means than a role: read its inputs", (), Risk.ACCESS)


def _restriction(step: Step) -> Iterator[Statement]:
    if step.after is None:
        yield Statement("is removed: what it prevented becomes possible", (), Risk.ACCESS)
    elif step.before is not None:
        yield Statement("prevents something else than before", (), Risk.ACCESS)


def _audit(step: Step) -> Iterator[Statement]:
    if step.after is None:
        yield Statement("is removed: this access is no longer logged", (), Risk.CAUTION)
    elif step.before is not None:
        yield Statement("logs other access than before", (), Risk.CAUTION)


def _service(step: Step) -> Iterator[Statement]:
    if step.before and step.after:
        yield from weakened_guards(_SERVICE_GUARDS, step.before.inputs, step.after.inputs)
    elif step.before and step.before.inputs.get("disableOnDestroy") is not False and not step.before.retain:
        yield Statement("is disabled for the whole project ({})", ("disableOnDestroy",), Risk.CAUTION)


def _account(step: Step) -> Iterator[Statement]:
    if step.before and step.after:
        yield from weakened_guards(_ACCOUNT_GUARDS, step.before.inputs, step.after.inputs)
    if step.before and step.op in REMOVING_OPS and not step.before.retain:
        # Source: https://cloud.google.com/iam/docs/service-accounts-delete-undelete.
        text = "is deleted: grants to it end everywhere, and a new account of the same name does not get them back"
        yield Statement(text, (), Risk.CAUTION)


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


_STATEMENTS: Final[tuple[tuple[Callable[[str], Any], Callable[[Step], Iterator[Statement]]], ...]] = (
    (CUSTOM_ROLE.search, _role),
    (_PROJECT_GRANT.__eq__, _deletion_grant),
    (_KEYS.__contains__, _key),
    (_PROVIDER.search, _provider),
    (_RESTRICTION.search, _restriction),
    (_OTHER_ACCESS.search, _other_access),
    (_AUDIT.search, _audit),
    (_SERVICE.__eq__, _service),
    (_ACCOUNT.__eq__, _account),
)
"""Which types a function of this module is about."""
