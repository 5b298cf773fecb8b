"""The reference pages, which are generated from the schema and the commands."""

import re
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
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc.reader import read_file

KEYS = [*keys(schemas.load_schema("tpucfg"))]
SPEC = (reference.PAGES / "spec.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (reference.PAGES / "commands.md").read_text(encoding="utf-8")


def test_the_pages_are_up_to_date() -> None:
    """Each page equals its generated text, which `make pages` writes."""
    assert [path.name for path, _ in reference.differing()] == []


def test_the_check_fails_for_outdated_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`--check` exits with 1 and writes nothing; without it the pages are written, and the status is 0."""
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    monkeypatch.setattr(reference, "PAGES", tmp_path / "reference")
    (tmp_path / "schema").symlink_to(ROOT / "schema")

    assert reference.main(["--check"]) == 1
    assert not (tmp_path / "reference").exists()
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.dotted)
def test_every_key_has_its_entry(key: Key) -> None:
    """Each key that the schema allows, at any depth, has an entry with a sentence and its type."""
    entry = SPEC.partition(f"# `{key.dotted}`\n")[2].partition("\n#")[0]

    assert prose(key.schema["description"]) in entry
    assert f"*{type_of(key.schema)}" in entry
    for clause in form_of(key.schema):
        assert prose(clause) in entry


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.dotted)
def test_an_example_is_valid_at_its_place(key: Key, tmp_path: Path) -> None:
    """The example of an entry is one line of YAML, and a spec with it at the key's path has no invalid key or value."""
    shown = SPEC.partition(f"# `{key.dotted}`\n")[2].partition("\n#")[0].rpartition("Example: `")[2].strip().strip("`")
    lines = [*(f"{step}:" for step in key.instances[:-1]), shown]
    text = "\n".join(f"{'  ' * depth}{line}" for depth, line in enumerate(lines))
    value = yaml.safe_load(text)
    for step in key.instances:
        value = value[step]
    assert value == key.schema["examples"][0]
    path = tmp_path / "tpucfg.yaml"
    path.write_text(text, encoding="utf-8")
    findings = parse_project(read_file(path)).findings
    # An example is one key, so findings about missing keys are expected.
    assert [finding for finding in findings if finding.id in {"TPU002", "TPU004", "TPU006", "TPU007"}] == []


def test_every_command_has_its_section() -> None:
    """Each command has a section with its usage."""
    for name in COMMANDS:
        assert f"## tpucfg {name}\n" in COMMANDS_PAGE
        assert re.search(rf"^tpucfg {name}( \[OPTIONS\])?", COMMANDS_PAGE, re.MULTILINE)


def test_angle_brackets_are_escaped() -> None:
    """A placeholder such as `<env>` in a help text would be an unknown tag, which no browser shows."""
    prose = re.sub(r"<!--.*?-->|```.*?```|`[^`]*`", "", SPEC + COMMANDS_PAGE, flags=re.DOTALL)

    assert "<" not in prose
