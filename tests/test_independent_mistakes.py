"""Two mistakes in different sections of a spec: both are said in one run, and nothing that is not so."""

import json
import random
from functools import cache
from typing import Any, Final

import pytest

from badspecs import BAD, cases, file_of, findings_of, is_alone
from tpucfg.findings import Finding
from tpucfg.yamldoc.reader import read_file, read_text

BASE: Final[dict[str, Any]] = read_file(BAD / "TPU002-empty-file" / "fixed.yaml").data
STRUCTURE: Final = ("TPU004", "TPU005", "TPU006", "TPU007", "TPU008", "TPU009")
"""Mistakes that break a section, so that no rule can compare it with others."""
PAIRS: Final = 1200


def changes() -> dict[str, dict[str, Any]]:
    """The sections in which each case differs from the small valid spec; None for one that is left out."""
    found = {}
    for folder in cases():
        file = file_of(folder)
        if not file.is_file() or not is_alone(folder) or file.name.startswith("config."):
            continue
        data = read_file(file).data
        if isinstance(data, dict):
            changed = {key: data.get(key) for key in {*data, *BASE} if data.get(key) != BASE.get(key)}
            if 1 <= len(changed) <= 3:
                found[folder.name] = changed
    return found


CHANGES: Final = changes()


def applied(*names: str) -> dict[str, Any]:
    """The small spec with the changes of these cases."""
    data = dict(BASE)
    for name in names:
        data |= CHANGES[name]
    return {key: value for key, value in data.items() if value is not None or key in ("trainer", "training")}


@cache
def mistakes(*names: str) -> frozenset[tuple[str, str]]:
    """The errors of the small spec with the changes of these cases, without their places."""
    file = BAD / names[0] / "tpucfg.yaml"
    found: tuple[Finding, ...] = findings_of(read_text(json.dumps(applied(*names)), "tpucfg.yaml"), file)
    return frozenset((finding.id, finding.message) for finding in found if finding.level == "error")


def pairs() -> list[tuple[str, str]]:
    """Cases that break one section, each with others that change other sections."""
    breaking = [name for name in CHANGES if mistakes(name) and all(id_ in STRUCTURE for id_, _ in mistakes(name))]
    every = [(a, b) for a in breaking for b in CHANGES if not set(CHANGES[a]) & set(CHANGES[b]) and mistakes(b)]
    return random.Random(0).sample(every, min(PAIRS, len(every)))  # noqa: S311 - nothing here is a secret


@pytest.mark.parametrize("chunk", range(8))
def test_a_broken_section_brings_no_error_that_is_none(chunk: int) -> None:
    """With both mistakes in the spec there is no error that neither of them makes alone."""
    for a, b in pairs()[chunk::8]:
        assert mistakes(a, b) <= mistakes(a) | mistakes(b), (a, b)


@pytest.mark.parametrize("chunk", range(8))
def test_a_broken_section_hides_no_broken_section(chunk: int) -> None:
    """Whatever breaks a section is said whatever breaks another; what compares sections may wait."""
    for a, b in pairs()[chunk::8]:
        expected = mistakes(a) | {(id_, said) for id_, said in mistakes(b) if id_ in STRUCTURE}
        assert expected - by_comparison(a, b) <= mistakes(a, b), (a, b)


def by_comparison(*names: str) -> set[tuple[str, str]]:
    """Errors of structure that compare a section with one that the other case changes."""
    compared = ("overrides", "no sizes", "needs the key sizes", "on ai-platform")
    return {it for name in names for it in mistakes(name) if any(word in it[1] for word in compared)}


def test_there_are_enough_pairs() -> None:
    """The corpus has many mistakes that can be combined."""
    assert len(pairs()) == PAIRS
