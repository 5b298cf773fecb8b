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


def changed_sections() -> dict[str, dict[str, Any]]:
    """Return the sections in which each case differs from the base spec; None is an omitted section."""
    changes = {}
    for folder in cases():
        file = file_of(folder)
        if not file.is_file() or not has_one_file(folder) or file.name.startswith("config."):
            continue
        data = read_file(file).data
        if isinstance(data, dict):
            changed = {key: data.get(key) for key in {*data, *BASE} if data.get(key) != BASE.get(key)}
            if 1 <= len(changed) <= 3:
                changes[folder.name] = changed
    return changes


CHANGES: Final = changed_sections()


def changed_spec(*names: str) -> dict[str, Any]:
    """Return the base spec with the changes of these cases."""
    data = dict(BASE)
    for name in names:
        data |= CHANGES[name]
    return {key: value for key, value in data.items() if value is not None or key in ("trainer", "training")}


@cache
def mistakes(*names: str) -> frozenset[tuple[str, str]]:
    """Return the errors of the base spec with the changes of these cases, without their locations."""
    file = BAD / names[0] / "tpucfg.yaml"
    findings = findings_of(read_text(json.dumps(changed_spec(*names)), "tpucfg.yaml"), file)
    return frozenset((finding.id, finding.message) for finding in findings if finding.level == "error")


def pairs() -> list[tuple[str, str]]:
    """Return cases that break one section, each with another case that changes other sections."""
    breaking = [name for name in CHANGES if mistakes(name) and all(id_ in STRUCTURE for id_, _ in mistakes(name))]
    every = [(a, b) for a in breaking for b in CHANGES if not set(CHANGES[a]) & set(CHANGES[b]) and mistakes(b)]
    return random.Random(0).sample(every, min(PAIR_COUNT, len(every)))  # noqa: S311 - nothing here is a secret


@pytest.mark.parametrize("chunk", range(8))
def test_a_broken_section_causes_no_other_error(chunk: int) -> None:
    """With both mistakes in the spec, there is no error that neither of them causes alone."""
    for a, b in pairs()[chunk::8]:
        assert mistakes(a, b) <= mistakes(a) | mistakes(b), (a, b)


@pytest.mark.parametrize("chunk", range(8))
def test_a_broken_section_hides_no_other_broken_section(chunk: int) -> None:
    """A mistake that breaks a section is reported beside any other, unless its rule compares the two sections."""
    for a, b in pairs()[chunk::8]:
        expected = mistakes(a) | {(id_, message) for id_, message in mistakes(b) if id_ in STRUCTURE}
        assert expected - found_by_comparison(a, b) <= mistakes(a, b), (a, b)


def found_by_comparison(*names: str) -> set[tuple[str, str]]:
    """Return the errors of structure that compare a section with one that the other case changes."""
    phrases = ("overrides", "removes the program", "no sizes", "needs the key sizes", "on ai-platform")
    return {error for name in names for error in mistakes(name) if any(phrase in error[1] for phrase in phrases)}


def test_the_corpus_has_enough_pairs() -> None:
    """The corpus has as many pairs of mistakes as the tests sample."""
    assert len(pairs()) == PAIR_COUNT
