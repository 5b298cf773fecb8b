"""The meaning of changed inputs and options of resources: one table for the types that the bundled program declares.

Of every other type nothing is known: its creation and its change are cautions, and inputs that are called a protection,
a retention or a deletion are destructive where they get weaker. Grants of access are compared in `grants.py`.
"""

from typing import Final

from tpucfg.changes import resource_conditions as when
from tpucfg.changes.conditions import Comparison, Condition, added, removed
from tpucfg.changes.facts import ABSENT, FactChange
from tpucfg.changes.meanings import Meaning
from tpucfg.changes.resources import REMOVING_OPS
from tpucfg.changes.statements import Risk

_HARMLESS: Final = (
    "*.type",
    "bucket.labels.**",
    *(f"account.{name}" for name in ("accountId", "description", "displayName", "project")),
    *(f"role.{name}" for name in ("description", "project", "roleId", "stage", "title")),
    # Compared with the rules of the base, or as grants, or as inputs that replace the bucket.
    *(f"bucket.{name}" for name in ("lifecycleRules", "location", "name", "project")),
    *(f"bucket.{name}" for name in ("publicAccessPrevention", "uniformBucketLevelAccess")),
    *(f"{kind}.{name}" for kind in ("service", "identity") for name in ("operation", "project", "service")),
    "grant.**",
    *(f"*option.*.{name}" for name in ("parent", "provider", "retainOnDelete")),
    *(f"new option.*.{name}" for name in ("additionalSecretOutputs", "replacementTrigger")),
)
"""Patterns of facts whose change has no sentence unless a row has one."""


# The table


def _input(pattern: str, risk: Risk, condition: Condition, sentence: str) -> Meaning:
    """Return a row about an input of a resource that exists before and after."""

    def applies(change: FactChange, comparison: Comparison) -> bool | tuple[str, ...]:
        operations = comparison.pair(change.scope, str(change.name[0]), when.OPERATION)
        return False if ABSENT in operations else condition(change, comparison)

    return Meaning(pattern, risk, when=applies, sentence=f"{sentence} ({{}})")


def _option(pattern: str, risk: Risk, sentence: str, condition: Condition = when.added_items) -> Meaning:
    return Meaning(pattern, risk, when=condition, sentence=f"{sentence} ({{}})")


def _event(pattern: str, risk: Risk, condition: Condition, sentence: str) -> Meaning:
    """Return a row about a resource, or about what is common to inputs of any type."""
    return Meaning(pattern, risk, when=condition, sentence=sentence)


_CAUTION, _ACCESS, _UNKNOWN, _LOSS = Risk.CAUTION, Risk.ACCESS, Risk.UNKNOWN, Risk.DESTRUCTIVE
_NO_DELETION: Final = "running slices can no longer delete themselves; let bounded ones end first"
_NOT_LEFT: Final = "is no longer left behind when it is removed from the stack"
_MOVES: Final = "unless an alias matches its old place, it is deleted and created anew"
_DECIDES: Final = "has {}, which changes what an update does"
_WITHOUT_LOSS: Final = ("additionalSecretOutputs", "deleteBeforeReplace", "hooks", "version")
_TAKING_OVER: Final = ("envVarMappings", "importId", "pluginDownloadURL", "stateMigrations")
_BY_DEFAULT: Final = when.differs("the default one")
_LESS: Final = "loses protection: {} is {}, previously {}"
_LOSES: Final = "can lose data: {} is {}, previously {}"
MEANINGS: Final = (
    # https://cloud.google.com/storage/docs
    *(_input(f"bucket.{key}.*", _LOSS, when.loses_protection, _LESS) for key in ("softDeletePolicy", "versioning")),
    _input("bucket.storageClass", _CAUTION, when.differs("STANDARD"), "stores new objects as {}, previously as {}"),
    _input("bucket.forceDestroy", _LOSS, when.can_lose, _LOSES),
    _input(
        "bucket.encryption.*",
        _CAUTION,
        when.differs("Google's own keys"),
        "encrypts new objects with {}, previously with {}",
    ),
    # https://cloud.google.com/iam/docs/service-accounts-delete-undelete
    _event(
        "account.operation",
        _CAUTION,
        when.operation(*REMOVING_OPS),
        "is deleted: grants to it end everywhere, and a new account of the same name does not get them back",
    ),
    _event(
        "service.operation", _CAUTION, when.disables_service, "is disabled for the whole project (disableOnDestroy)"
    ),
    _input("service.disableOnDestroy", _CAUTION, when.not_off, "is disabled for the whole project when it is removed"),
    _input("role.permissions", _ACCESS, when.added_items, "gives everyone who has the role {}"),
    _event("role.permissions", _CAUTION, when.lost_deletion, f"loses {{}}: {_NO_DELETION}"),
    _input("grant.member", _CAUTION, when.deleting_member, f"takes the role from {{}}: {_NO_DELETION}"),
    _event(
        "*.operation", _UNKNOWN, when.operation("import"), "takes over what exists in the cloud, with all it contains"
    ),
    _event("unknown.operation", _LOSS, when.command, "runs commands on the machine of the update, by its type {}"),
    _event("unknown.operation", _UNKNOWN, when.unknown_type, "is of the type {}, about which this review has no rules"),
    # https://www.pulumi.com/docs/iac/concepts/resources/options/
    _option("option.*.aliases", _UNKNOWN, "takes over {}"),
    _option(
        "option.*.provider", _LOSS, "gets the provider {} instead of {}, and with it other credentials", _BY_DEFAULT
    ),
    _option("option.*.ignoreChanges", _LOSS, _DECIDES, when.other_items),
    *(_option(f"option.*.{name}", _UNKNOWN, _DECIDES) for name in _WITHOUT_LOSS),
    # Without data, a resource that is deleted and created anew is the same as before.
    _option("option.data.parent", _LOSS, f"moves to {{}} from {{}}: {_MOVES}", when.differs("the stack")),
    _option("option.data.retainOnDelete", _LOSS, f"{_NOT_LEFT}: its data would be deleted", removed),
    *(_option(f"option.{group}.retainOnDelete", _CAUTION, _NOT_LEFT, removed) for group in ("other", "grant")),
    _option("*option.grant.retainOnDelete", _ACCESS, "remains when the stack no longer declares it", added),
    _option("old option.grant.retainOnDelete", _ACCESS, "stays in the cloud: the access remains", removed),
    # By these, a new resource takes over another one, or runs other code with the credentials of an update.
    *(_option(f"new option.*.{name}", _LOSS, _DECIDES) for name in _TAKING_OVER),
    *map(Meaning, _HARMLESS),
)
"""By the kind of the resource and the input, or by its group and the option. All rows that apply have a sentence."""
OTHER_MEANINGS: Final = (
    _option("option.**", _LOSS, _DECIDES),
    _option("new option.**", _UNKNOWN, "has {}, whose effect this review cannot show"),
    Meaning("*option.**"),
    _event("**", _LOSS, when.deletes_others, "deletes or overwrites data: {} is {}"),
    _event("**", _LOSS, when.loses_protection, _LESS),
    _event("**", _LOSS, when.can_lose, _LOSES),
    # The type's own sentence is about all other inputs.
    Meaning("unknown.**"),
    _event("**", _UNKNOWN, when.described, "has another {}: {}, previously {}; no rule knows its effect"),
)
"""Rows about what no row above is about, of which the first one that applies has the sentence."""
