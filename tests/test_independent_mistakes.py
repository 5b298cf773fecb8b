"""Two mistakes in different sections of a spec are both reported in one run, and cause no further finding."""

import json
import random
from functools import cache
from typing import Any, Final

import pytest

from badspecs import BAD, cases, file_of, findings_of, has_one_file
from tpucfg.yamldoc.reader import read_file, read_text

BASE: Final[dict[str, Any]] = read_file(BAD / "TPU002-empty-file" / "fixed.yaml").data
STRUCTURE: Final = ("TPU004", "TPU005", "TPU006", "TPU007", "TPU008", "TPU009")
"""The ids of mistakes that break a section, so that no rule can compare it with others."""
PAIR_COUNT: Final = 1200


@cache
def changed_sections() -> dict[str, dict[str, Any]]:
    """Return the sections in which each case differs from the base spec; None is an omitted section."""
    changes = {}
    for folder in cases():
        file = file_of(folder)
        if not file.is_file() or not has_one_file(folder) or file.name.startswith("config."):
            continue
        data = read_file(file).data
        if isinstance(data, dict):
            changed = {
                key: data.get(key) for key in {*data, *BASE} if data.get(key) != BASE.get(key)
            }
            if 1 <= len(changed) <= 3:
                changes[folder.name] = changed
    return changes


def changed_spec(*names: str) -> dict[str, Any]:
    """Return the base spec with the changes of these cases."""
    data = dict(BASE)
    for name in names:
        data |= changed_sections()[name]
    return {
        key: value
        for key, value in data.items()
        if value is not None or key in ("trainer", "training")
    }


@cache
def mistakes(*names: str) -> frozenset[tuple[str, str]]:
    """Return the errors of the base spec with the changes of these cases, without their locations."""
    file = BAD / names[0] / "tpucfg.yaml"
    findings = findings_of(read_text(json.dumps(changed_spec(*names)), "tpucfg.yaml"), file)
    return frozenset(
        (finding.id, finding.message) for finding in findings if finding.level == "error"
    )


def pairs() -> list[tuple[str, str]]:
    """Return cases that break one section, each with another case that changes other sections."""
    changes = changed_sections()
    breaking = [
        name
        for name in changes
        if mistakes(name) and all(id_ in STRUCTURE for id_, _ in mistakes(name))
    ]
    every = [
        (a, b)
        for a in breaking
        for b in changes
        if not set(changes[a]) & set(changes[b]) and mistakes(b)
    ]
    return random.Random(0).sample(every, min(PAIR_COUNT, len(every)))  # noqa: S311 - nothing here is a secret


@pytest.mark.slow
def test_a_broken_section_hides_and_causes_nothing_else() -> None:
    """Two mistakes cause no error that neither causes alone, and hide none of a section that they break.

    An error of a rule that compares the two sections is hidden.
    """
    sampled = pairs()
    assert len(sampled) == PAIR_COUNT
    for a, b in sampled:
        errors = mistakes(a, b)
        assert errors <= mistakes(a) | mistakes(b), (a, b)
        expected = mistakes(a) | {
            (id_, message) for id_, message in mistakes(b) if id_ in STRUCTURE
        }
        assert expected - found_by_comparison(a, b) <= errors, (a, b)


def found_by_comparison(*names: str) -> set[tuple[str, str]]:
    """Return the errors of structure that compare a section with one that the other case changes."""
    phrases = ("overrides", "removes the program", "no sizes", "has sizes", "on ai-platform")
    return {
        error
        for name in names
        for error in mistakes(name)
        if any(phrase in error[1] for phrase in phrases)
    }
