"""Grants of access that resources declare: a role, a member, and the object that the role is granted on.

Every way to declare a grant becomes the same value: members and bindings, whole policies, access control lists, and the
access entries of a BigQuery dataset.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.infra.resources import Resource

PUBLIC: Final = ("allUsers", "allAuthenticatedUsers")
"""Members that include the whole internet: https://cloud.google.com/iam/docs/principals-overview."""
_PUBLIC_FOLDED: Final = frozenset(member.casefold() for member in PUBLIC)
HIDDEN: Final = "[not a text]"
"""Stands for a role or a member that is not plain text, so that it is shown instead of skipped."""

_IAM_TYPE: Final = re.compile(r"/[A-Za-z]*?:(?P<object>[A-Za-z]*?)I[Aa][Mm](?P<form>Member|Binding|Policy)$")
"""The types of the provider that grant roles: `gcp:secretmanager/secretIamMember:SecretIamMember`."""
_ACL_TYPE: Final = re.compile(r":(?P<object>[A-Za-z]*?)(AccessControl|ACL)$")
_DATASET_ACCESS: Final = ("gcp:bigquery/dataset:Dataset", "gcp:bigquery/datasetAccess:DatasetAccess")
_OBJECTS: Final[Mapping[str, tuple[str, str]]] = {
    "projects": ("project", "project"),
    "folder": ("folder", "folder"),
    "organizations": ("organization", "orgId"),
    "serviceaccount": ("account", "serviceAccountId"),
    "billing": ("billing account", "billingAccountId"),
}
"""The kind of object and the input that names it, by module, for types that do not contain the kind in their name."""
_GRANT_KEYS: Final = frozenset(
    [
        "role",
        "member",
        "members",
        "condition",
        "policyData",
        "entity",
        "roleEntities",
        "predefinedAcl",
        "defaultAcl",
        "deletionPolicy",
    ]
)
"""Inputs that describe a grant and not its object."""
_OUTER_KEYS: Final = ("project", "location", "region", "zone")
"""Inputs that contain the object, the widest first."""
_PATH_PREFIX: Final = re.compile(r"^(projects/[^/]+/serviceAccounts|projects|folders|organizations|b|gs:/)/")
"""The start of an object's name in Google's long form."""
_PUBLIC_ACLS: Final[Mapping[str, tuple[str, str]]] = {
    "publicRead": ("READER", "allUsers"),
    "publicReadWrite": ("WRITER", "allUsers"),
    "authenticatedRead": ("READER", "allAuthenticatedUsers"),
}
"""Predefined lists that include the public: https://cloud.google.com/storage/docs/access-control/lists#predefined-acl."""
_DATASET_MEMBERS: Final[Mapping[str, str]] = {
    "userByEmail": "user:",
    "groupByEmail": "group:",
    "domain": "domain:",
    "iamMember": "",
    "specialGroup": "",
}
"""Inputs of an access entry of a dataset that name its member, and the kind that IAM writes before it."""


def is_public(member: str) -> bool:
    """Return True for a member that includes the whole internet, however its name is written."""
    return member.strip().casefold() in _PUBLIC_FOLDED


class Target(NamedTuple):
    """The object that a role is granted on."""

    kind: str
    """`bucket`, `project`, `account`, `secret`, …; empty for a resource that grants nothing."""
    name: str
    """The name, after the names of what contains it; empty if the resource does not name it."""


class Grant(NamedTuple):
    """A role for one member on one object."""

    role: str
    member: str
    on: Target
    condition: str = ""
    """The expression of the condition; empty if there is none."""


def grants_of(resource: Resource | None) -> tuple[Grant, ...]:
    """Return the grants that a resource declares; most resources declare none."""
    if resource is None:
        return ()
    pairs = [*_iam_pairs(resource.inputs), *_policy_pairs(resource.inputs), *_dataset_pairs(resource)]
    if _ACL_TYPE.search(resource.type):
        pairs += _acl_pairs(resource.inputs)
    on = target_of(resource)
    return tuple(dict.fromkeys(Grant(_text(role), _text(member), on, condition) for role, member, condition in pairs))


def declares_grants(resource_type: str) -> bool:
    """Return True for a type that grants roles, or that has an access control list."""
    return bool(_IAM_TYPE.search(resource_type) or _ACL_TYPE.search(resource_type))


def target_of(resource: Resource) -> Target:
    """Return the object on which a resource grants access."""
    module = resource.type.partition(":")[2].partition("/")[0].casefold()
    match = _IAM_TYPE.search(resource.type) or _ACL_TYPE.search(resource.type)
    words = _words(match["object"]) if match else ""
    if resource.type in _DATASET_ACCESS:
        return Target("dataset", _join_names(resource.inputs, ("project", "datasetId")))
    if words == "bucket":
        return Target(words, _join_names(resource.inputs, ("bucket",)))
    if not words and module in _OBJECTS:
        kind, key = _OBJECTS[module]
        return Target(kind, _join_names(resource.inputs, (key,)))
    others = sorted(resource.inputs.keys() - {*_GRANT_KEYS, *_OUTER_KEYS})
    return Target(words or module or "object", _join_names(resource.inputs, (*_OUTER_KEYS, *others)))


def short_name(name: str) -> str:
    """Return the name of an object without the start of Google's long form, which the provider accepts too."""
    return _PATH_PREFIX.sub("", name)


def _join_names(inputs: Mapping[str, Any], keys: Iterable[str]) -> str:
    values = (inputs.get(key) for key in keys)
    return "/".join(short_name(_text(value)) for value in values if value not in (None, ""))


def unparsed_policy(resource: Resource | None) -> str | None:
    """Return the text of a policy that replaces all others on its object; None if the resource is no policy."""
    policy = resource.inputs.get("policyData") if resource else None
    return None if policy is None else _text(policy)


def _words(name: str) -> str:
    """Return the words of a type's name in lower case: `CryptoKey` is `crypto key`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else HIDDEN


_Pair = tuple[Any, Any, str]
"""A role, a member and the condition's expression."""


def _iam_pairs(inputs: Mapping[str, Any]) -> Iterator[_Pair]:
    """Yield the pairs of a member or a binding."""
    if "role" not in inputs or not {"member", "members"} & inputs.keys():
        return
    members = inputs.get("members")
    own = [inputs["member"]] if inputs.get("member") is not None else []
    # A list that is not known yet is one hidden member.
    listed = members if isinstance(members, list) else [] if members is None else [members]
    for member in [*own, *listed]:
        yield inputs["role"], member, _expression(inputs.get("condition"))


def _expression(condition: Any) -> str:
    """Return the expression of a condition; its title and description restrict nothing."""
    if condition in (None, {}, []):
        return ""
    expression = condition.get("expression") if isinstance(condition, dict) else condition
    return expression if isinstance(expression, str) else HIDDEN


def _policy_pairs(inputs: Mapping[str, Any]) -> Iterator[_Pair]:
    """Yield the pairs of a whole policy, which is JSON in an input."""
    policy = inputs.get("policyData")
    try:
        data = json.loads(policy) if isinstance(policy, str) else None
    except (ValueError, RecursionError):
        return
    bindings = data.get("bindings") if isinstance(data, dict) else None
    for binding in bindings if isinstance(bindings, list) else []:
        members = binding.get("members") if isinstance(binding, dict) else None
        for member in members if isinstance(members, list) else []:
            yield binding.get("role"), member, _expression(binding.get("condition"))


def _acl_pairs(inputs: Mapping[str, Any]) -> Iterator[_Pair]:
    """Yield the pairs of an access control list, whose entities are written `user-a@example.com`."""
    if "entity" in inputs:
        yield inputs.get("role"), _member_of_entity(inputs["entity"]), ""
    entries = inputs.get("roleEntities")
    for entry in entries if isinstance(entries, list) else []:
        role, _, entity = _text(entry).partition(":")
        yield role, _member_of_entity(entity), ""
    for key in ("predefinedAcl", "defaultAcl"):
        if pair := _PUBLIC_ACLS.get(_text(inputs.get(key))):
            yield (*pair, "")


def _member_of_entity(entity: Any) -> Any:
    """Return the member that IAM knows an entity by."""
    kind, dash, name = _text(entity).partition("-")
    return f"{kind}:{name}" if dash and kind in {"user", "group", "domain"} else entity


def _dataset_pairs(resource: Resource) -> Iterator[_Pair]:
    """Yield the pairs of the access entries of a dataset."""
    if resource.type not in _DATASET_ACCESS:
        return
    entries = resource.inputs.get("accesses", [resource.inputs])
    for entry in entries if isinstance(entries, list) else []:
        for key, kind in _DATASET_MEMBERS.items():
            if isinstance(entry, dict) and entry.get(key) is not None:
                yield entry.get("role"), f"{kind}{_text(entry[key])}", ""
