"""Invariants of the data files that the loader relies on without checking.

No test here loads the catalog, so a broken file fails with its own error.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tpucfg.catalog.catalog import DATA
from tpucfg.catalog.slices import OLD_GENERATION, SINGLE_HOST
from tpucfg.catalog.target_facts import TARGET_FACTS

ROOT = Path(__file__).parents[2]


def read_yaml(file: Path) -> Any:
    """Return the content of a file, parsed by libyaml: the other parser takes a tenth of a collection of all tests."""
    return yaml.load(file.read_text(), Loader=yaml.CSafeLoader)


INDEX: dict[str, Any] = read_yaml(DATA / "index.yaml")
FILES: dict[str, Any] = {name: read_yaml(DATA / f"{name}.yaml") for name in INDEX}

each_file = pytest.mark.parametrize("name", INDEX)


def test_every_data_file_is_in_the_index() -> None:
    """The index names the file of every generation; any other file would be unused."""
    assert {path.stem for path in DATA.glob("*.yaml")} == {*INDEX, "index", "sources"}


def test_the_schema_is_a_valid_schema() -> None:
    """`schema/catalog.schema.json` is itself draft 2020-12."""
    Draft202012Validator.check_schema(json.loads((ROOT / "schema/catalog.schema.json").read_text()))


@each_file
def test_a_file_fits_the_schema(name: str) -> None:
    """Each data file passes the closed schema that its first line names."""
    path = DATA / f"{name}.yaml"
    first = path.read_text().partition("\n")[0]
    schema = path.parent / first.removeprefix("# yaml-language-server: $schema=")
    errors = Draft202012Validator(json.loads(schema.read_text())).iter_errors(FILES[name])
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@each_file
def test_a_file_has_no_duplicate_key(name: str) -> None:
    """No mapping of a data file repeats a key: YAML parsers keep the last value without an error."""
    document = yaml.compose((DATA / f"{name}.yaml").read_text())
    assert document is not None
    assert list(_repeated(document)) == []


def _repeated(node: yaml.Node) -> Iterator[str]:
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        yield from {key for key in keys if keys.count(key) > 1}
        for _, value in node.value:
            yield from _repeated(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _repeated(value)


@each_file
def test_a_file_refers_only_to_its_own_sizes_and_machines(name: str) -> None:
    """Every list of sizes or machines in a file names only those that the file defines."""
    data = FILES[name]
    entries = [*data["targets"].values(), *data["zones"]]
    named = {
        size for entry in entries for key in ("sizes", "except") for size in entry.get(key, ())
    }
    assert named <= set(data["sizes"])
    machines = {
        machine for row in data["sizes"].values() for machine in row.get("machines", ())
    } | {data["machine"]}
    only_named = {machine for machine, row in data["machines"].items() if row.get("only_named")}
    assert machines - {None} == set(data["machines"]) - only_named
    assert data["generation"] == name


def test_every_source_is_cited_and_every_citation_is_a_source() -> None:
    """The sources in `sources.yaml` are exactly those that the data files and the rules of several slices cite."""
    cited = {source for data in FILES.values() for source in _cited(data)}
    refusals = (
        OLD_GENERATION,
        SINGLE_HOST,
        *(facts.one_slice_refusal for facts in TARGET_FACTS.values()),
    )
    cited |= {source for refusal in refusals if refusal for source in refusal.sources}
    assert cited == set(yaml.safe_load((DATA / "sources.yaml").read_text()))


def _cited(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"sources", "chip_sources", "device_sources"}:
                yield from inner
            elif key == "source":
                yield inner
            else:
                yield from _cited(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _cited(inner)


def test_no_alias_is_a_real_prefix() -> None:
    """An alias that equals a prefix, or belongs to two generations, would give a wrong suggestion."""
    prefixes = [entry["prefix"] for entry in INDEX.values()]
    aliases = [alias for entry in INDEX.values() for alias in entry["aliases"]]
    assert len({*prefixes, *aliases}) == len(prefixes) + len(aliases)
