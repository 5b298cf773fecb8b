"""Requirements: upper bounds in pyproject.toml have their reason beside them, and two Go programs share modules."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LINES = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
_ENTRY = re.compile(
    r'\s+"(?P<requirement>[a-z][a-z0-9-]*(?:\[[a-z]+\])?[<>=!~][^"]*)",?(?:\s+# (?P<reason>.+))?'
)
BOUNDS = {"<", "<=", "==", "~=", "===", "!="}


def _entries() -> Iterator[tuple[str, str | None]]:
    for line in LINES:
        if match := _ENTRY.fullmatch(line):
            yield match["requirement"], match["reason"]


ENTRIES = [*_entries()]


def _bounded(requirement: str) -> bool:
    return any(part.operator in BOUNDS for part in Requirement(requirement).specifier)


def test_pattern_matches_every_requirement() -> None:
    """The pattern matches as many entries as there are requirements in the file."""
    assert (
        len(ENTRIES)
        == sum(bool(re.match(r'\s+"[a-z][a-z0-9\[\]-]*[<>=!~]', line)) for line in LINES)
        > 20
    )
    assert {"typer>=0.26,<0.29", "hatchling>=1.27"} <= {requirement for requirement, _ in ENTRIES}


@pytest.mark.parametrize(
    ("requirement", "reason"), [entry for entry in ENTRIES if _bounded(entry[0])]
)
def test_upper_bound_has_a_reason(requirement: str, reason: str | None) -> None:
    """A bound or pin excludes newer versions for every user, so a comment gives the reason."""
    assert reason, requirement
    assert len(reason.split()) > 4


def test_only_necessary_runtime_bounds_exist() -> None:
    """Of the package's own dependencies, only these have an upper bound."""
    text = "\n".join(LINES)
    runtime = text.partition("\ndependencies = [")[2].partition("\n]")[0]
    bounded = {
        Requirement(entry).name
        for entry, _ in ENTRIES
        if f'"{entry}"' in runtime and _bounded(entry)
    }

    assert bounded == {"typer"}
