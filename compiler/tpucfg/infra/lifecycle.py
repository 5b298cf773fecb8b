"""Lifecycle rules of buckets: which objects a rule reaches, and when.

https://cloud.google.com/storage/docs/lifecycle describes the actions and the conditions, all of which an object has to
satisfy.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.infra.resources import number
from tpucfg.text_format import listed

DELETE: Final = "Delete"
SET_STORAGE_CLASS: Final = "SetStorageClass"
ABORT_UPLOAD: Final = "AbortIncompleteMultipartUpload"
JOBS_PREFIX: Final = "jobs/"
"""Below it are the folders of all jobs, with their checkpoints."""

MAX_RULES: Final = 100
"""Google's limit for one bucket: https://cloud.google.com/storage/quotas#buckets."""
_MINIMUMS: Final = ("age", "daysSinceCustomTime", "daysSinceNoncurrentTime", "numNewerVersions", "sizeAboveBytes")
"""Conditions that reach fewer objects the higher they are. The provider leaves out a zero."""
_NONCURRENT: Final = ("daysSinceNoncurrentTime", "noncurrentTimeBefore", "numNewerVersions")
"""Conditions that only a noncurrent version can satisfy."""
_MAX_NAMES: Final = 5
_NAMES: Final = {
    "matchesPrefixes": "below {}",
    "matchesSuffixes": "ending in {}",
    "matchesStorageClasses": "of class {}",
}
_TIMES: Final = {
    "age": "{} days after their creation",
    "createdBefore": "created before {}",
    "daysSinceCustomTime": "{} days after their custom time",
    "customTimeBefore": "with a custom time before {}",
    "daysSinceNoncurrentTime": "{} days after they became noncurrent",
    "noncurrentTimeBefore": "that became noncurrent before {}",
    "numNewerVersions": "that have {} newer versions",
    "sizeAboveBytes": "larger than {} bytes",
    "sizeBelowBytes": "smaller than {} bytes",
}


class LifecycleRule(NamedTuple):
    """One rule of a bucket."""

    action: str
    storage_class: str
    """The class to which objects are moved; empty for other actions."""
    conditions: Mapping[str, Any]
    """Without those that the provider leaves out."""

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes of the names that the rule reaches; empty if it reaches every name."""
        return _texts(self.conditions.get("matchesPrefixes"))

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of the names that the rule reaches; empty if it reaches every name."""
        return _texts(self.conditions.get("matchesSuffixes"))

    @property
    def only_noncurrent(self) -> bool:
        """True if the rule reaches only versions that an object with the same name has replaced."""
        is_archived = self.conditions.get("withState") == "ARCHIVED"
        return is_archived or any(key in self.conditions for key in _NONCURRENT)

    @property
    def reaches_jobs(self) -> bool:
        """True if the rule reaches the current objects of every job."""
        is_wide = not self.prefixes or any(JOBS_PREFIX.startswith(prefix) for prefix in self.prefixes)
        return is_wide and not self.only_noncurrent


def lifecycle_rules(inputs: Mapping[str, Any]) -> tuple[LifecycleRule, ...] | None:
    """Return the rules of a bucket; None if they are not known."""
    rules = inputs.get("lifecycleRules")
    if rules is None:
        return ()
    if not isinstance(rules, list) or len(rules) > MAX_RULES or not all(isinstance(rule, dict) for rule in rules):
        return None
    parts = [(rule.get("action"), rule.get("condition") or {}) for rule in rules]
    if not all(isinstance(action, dict) and isinstance(condition, dict) for action, condition in parts):
        return None
    return tuple(
        LifecycleRule(str(action.get("type")), str(action.get("storageClass") or ""), dict(_effective(condition)))
        for action, condition in parts
    )


def covers(rule: LifecycleRule, other: LifecycleRule) -> bool:
    """Return True if the rule does to every object what the other rule does to it, and no later."""
    if (rule.action, rule.storage_class) != (other.action, other.storage_class):
        return False
    keys = {*rule.conditions, *other.conditions}
    return all(_is_wider(key, rule.conditions.get(key), other.conditions.get(key)) for key in keys)


def describe_reach(rule: LifecycleRule, known: Sequence[str] = ()) -> tuple[str, tuple[str, ...]]:
    """Return the objects of a rule and its time, as a template with its values.

    Args:
        rule: the rule.
        known: prefixes that were reached before; others are listed first.
    """
    is_named = bool(rule.prefixes or rule.suffixes)
    fragments = ["noncurrent versions of" if rule.only_noncurrent else "", "objects" if is_named else "all objects"]
    values = []
    for key, template in (_NAMES | _TIMES).items():
        if key in rule.conditions:
            # A long list is cut, so that the prefixes with the jobs and those not reached before come first.
            texts = sorted(
                _texts(rule.conditions[key]), key=lambda text: (not JOBS_PREFIX.startswith(text), text in known)
            )
            fragments.append(template)
            values.append(listed(texts, _MAX_NAMES))
    if rule.conditions.keys().isdisjoint(_TIMES):
        fragments.append("at once")
    return " ".join(filter(None, fragments)), tuple(values)


def _effective(condition: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the conditions that restrict a rule: a zero, an empty list and an empty prefix restrict nothing."""
    for key, text in condition.items():
        value = number(text) if key in (*_MINIMUMS, "sizeBelowBytes") else text
        matches_all = value == "ANY" or (isinstance(value, list) and "" in value)
        is_set = value is False or bool(value)
        if is_set and not matches_all and not key.startswith("send") and key != "noAge":
            yield key, value


def _is_wider(key: str, wide: Any, narrow: Any) -> bool:
    """Return True if each object that satisfies the condition `narrow` also satisfies `wide`; None is no condition."""
    if wide is None or wide == narrow:
        return True
    return key in _MINIMUMS and isinstance(wide, int) and isinstance(narrow, int) and wide <= narrow


def _texts(value: Any) -> tuple[str, ...]:
    # An item that is not known matches no known text, so it is never covered by another.
    return tuple(str(item) for item in value) if isinstance(value, list) else () if value is None else (str(value),)
