"""Differences between the frozen behaviour and the behaviour now, and those that may be."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Final, NamedTuple

import yaml

from frozen.observe import FROZEN, Case

RISKS: Final = ("none", "caution", "access", "public", "unknown", "destructive")
"""The risks of statements, in ascending order."""
_ENVIRONMENTS: Final = ("dev", "prod")
_SIZE: Final = re.compile(r"(?:v\d\w*|tpu7x)-\d+(?:x\d+)?")
_WORD: Final = re.compile(r"[A-Za-z0-9-]+")


class Difference(NamedTuple):
    """A difference that is not better than the frozen behaviour."""

    group: str
    case: str
    what: str
    """One sentence, which an entry of gone.yaml names by a pattern."""


class Gone(NamedTuple):
    """An entry of gone.yaml: differences that the specification wants."""

    cases: str
    """A pattern of group and name: `attacks/drift-*`."""
    what: str
    """A pattern of the difference's sentence: `caution for dev*`."""
    because: str
    """The sentence of the specification."""

    def covers(self, difference: Difference) -> bool:
        """Return True if the entry allows the difference."""
        name = f"{difference.group}/{difference.case}"
        return fnmatchcase(name, self.cases) and fnmatchcase(difference.what, self.what)


@cache
def read_gone() -> tuple[Gone, ...]:
    """Return the entries of gone.yaml."""
    entries = yaml.safe_load((FROZEN / "gone.yaml").read_text()) or []
    return tuple(Gone(entry["cases"], entry["what"], entry["because"]) for entry in entries)


def differences(
    group: str, frozen: Mapping[str, Case], now: Mapping[str, Case]
) -> Iterator[Difference]:
    """Yield the differences of all frozen cases; a case that is new has none."""
    for name, case in frozen.items():
        sentences = case_differences(case, now[name]) if name in now else ["the case is missing"]
        yield from (Difference(group, name, sentence) for sentence in sentences)


def unlisted(group: str, frozen: Mapping[str, Case], now: Mapping[str, Case]) -> list[Difference]:
    """Return the differences that gone.yaml does not list."""
    different = differences(group, frozen, now)
    return [
        difference
        for difference in different
        if not any(entry.covers(difference) for entry in read_gone())
    ]


def case_differences(frozen: Case, now: Case) -> Iterator[str]:
    """Yield a sentence for each difference in one case.

    Configs, findings and the status of a check are equal. A review may be stricter: its status fails where it did, and
    each statement has one of an overlapping scope, whose risk is as high or higher.
    """
    is_review = "destructive" in frozen
    yield from _value_differences(frozen, now, ("configs",) if is_review else ("configs", "status"))
    for finding in _missing(frozen["findings"], now["findings"]):
        yield f"finding gone: {finding}"
    for finding in _missing(now["findings"], frozen["findings"]):
        yield f"finding new: {finding}"
    if is_review and "refusal" in now:
        yield f"review refused: {now['refusal']}"
    elif is_review:
        yield from _review_differences(frozen, now)


def _value_differences(frozen: Case, now: Case, keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        before, after = frozen.get(key), now.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            for name in sorted({*before, *after}):
                if before.get(name) != after.get(name):
                    yield f"{key} {name}: {before.get(name)} → {after.get(name)}"
        elif before != after:
            yield f"{key}: {before} → {after}"


def _missing(items: Sequence[str], others: Sequence[str]) -> list[str]:
    remaining = [*others]
    missing = []
    for item in items:
        if item in remaining:
            remaining.remove(item)
        else:
            missing.append(item)
    return missing


def _review_differences(frozen: Case, now: Case) -> Iterator[str]:
    if (frozen["status"], now["status"]) in {(3, 0), (3, 1), (1, 0)}:
        yield f"status under --fail-on destructive: {frozen['status']} → {now['status']}"
    for verdict, weaker in (("destructive", False), ("known", False), ("change", False)):
        if frozen[verdict] != now[verdict] and now[verdict] is weaker:
            yield f"verdict {verdict}: {frozen[verdict]} → {now[verdict]}"
    names = {*_ENVIRONMENTS, *frozen["environments"], *now["environments"]}
    for risk, scope, text in frozen["statements"]:
        overlapping = [
            other for other, place, _ in now["statements"] if overlaps(scope, place, names)
        ]
        highest = max(map(RISKS.index, overlapping), default=-1)
        if highest < RISKS.index(risk):
            now_risk = f"at most {RISKS[highest]}" if overlapping else "nothing"
            yield f"{risk} for {scope or 'the spec'}, now {now_risk}: {text}"
    for scope in frozen["block"]:
        if not any(overlaps(scope, other, names) for other in now["block"]):
            yield f"no caution above the folds for {scope or 'the spec'}"


def overlaps(scope: str, other: str, environments: set[str]) -> bool:
    """Return True if two scopes have an environment and a size in common; one that names none has all."""
    pairs = [(_named(text, environments), {*_SIZE.findall(text)}) for text in (scope, other)]
    return all(not one or not two or one & two for one, two in zip(*pairs, strict=True))


def _named(scope: str, environments: set[str]) -> set[str]:
    return environments & {*_WORD.findall(scope)}
