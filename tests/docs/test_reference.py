"""The reference pages, which are generated from the schema and the commands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import reference
import yaml
from refpages import prose
from refpages.keys import Key, keys
from refpages.schema_text import form_of, type_of

from spec_factory import ROOT
from tpucfg import schemas
from tpucfg.cli.app import COMMANDS
from tpucfg.findings import Finding
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc.reader import read_text

KEYS = [*keys(schemas.load_schema("tpucfg"))]
SPEC = (reference.PAGES / "spec.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (reference.PAGES / "commands.md").read_text(encoding="utf-8")


def test_the_pages_are_up_to_date() -> None:
    """Each page equals its generated text, which `make pages` writes."""
    assert [path.name for path, _ in reference.differing()] == []


def test_the_check_fails_for_outdated_pages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`--check` exits with 1 and writes nothing; without it the pages are written, and the status is 0."""
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    monkeypatch.setattr(reference, "PAGES", tmp_path / "reference")
    (tmp_path / "schema").symlink_to(ROOT / "schema")

    assert reference.main(["--check"]) == 1
    assert not (tmp_path / "reference").exists()
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


def entry_of(key: Key) -> str:
    """Return the text of a key's row, below the overview."""
    row = re.search(
        rf'^\| (?:<a id="{key.anchor}"></a>)?`{re.escape(key.dotted)}` \| (.*) \|$',
        SPEC,
        re.MULTILINE,
    )
    return row[1].replace(r"\|", "|") if row else ""


def test_every_key_has_its_entry() -> None:
    """Each key that the schema allows, at any depth, has an entry with a sentence and its type."""
    for key in KEYS:
        entry = entry_of(key)
        assert prose(key.schema["description"]) in entry, key.dotted
        assert f"*{type_of(key.schema)}" in entry, key.dotted
        for clause in form_of(key.schema):
            assert prose(clause) in entry, key.dotted


@pytest.mark.slow
def test_an_example_is_valid_at_its_place() -> None:
    """The example of an entry is one line of YAML, and a spec with it at the key's path has no invalid key or value."""
    for key in KEYS:
        assert [*invalid_in_example(key)] == [], key.dotted


def invalid_in_example(key: Key) -> Iterator[Finding]:
    """Yield the findings about an invalid key or value of a spec that has only the example of a key."""
    shown = entry_of(key).rpartition("Example: `")[2].strip().strip("`")
    lines = [*(f"{step}:" for step in key.instances[:-1]), shown]
    text = "\n".join(f"{'  ' * depth}{line}" for depth, line in enumerate(lines))
    value = yaml.safe_load(text)
    for step in key.instances:
        value = value[step]
    assert value == key.schema["examples"][0], key.dotted
    for finding in parse_project(read_text(text, "tpucfg.yaml")).findings:
        # An example is one key, so findings about missing keys are expected.
        if finding.id in {"TPU002", "TPU004", "TPU006", "TPU007"}:
            yield finding


def test_every_command_has_its_section() -> None:
    """Each command has a section with its usage."""
    for name in COMMANDS:
        assert f"## tpucfg {name}\n" in COMMANDS_PAGE
        assert re.search(rf"^`tpucfg {name}( \[OPTIONS\])?", COMMANDS_PAGE, re.MULTILINE)


def test_angle_brackets_are_escaped() -> None:
    """A placeholder such as `<env>` in a help text would be an unknown tag, which no browser shows."""
    prose = re.sub(
        r'<!--.*?-->|<a id="[\w-]+"></a>|```.*?```|`[^`]*`',
        "",
        SPEC + COMMANDS_PAGE,
        flags=re.DOTALL,
    )

    assert "<" not in prose
