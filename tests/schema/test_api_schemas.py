"""The schemas of request bodies accept and refuse what the services do, and equal what the script writes."""

import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import api_schemas
import apischema
import jsonschema
import jsonschema_rs
import pytest
import yaml

from official import MODULES, samples

FieldPath: TypeAlias = tuple[str | int, ...]


def schema_of(target: str) -> dict[str, Any]:
    """Return a committed schema."""
    text = (api_schemas.SCHEMA_DIR / f"{target}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def validator_of(target: str) -> Any:
    """Return a function that is True for a valid config, after comparing both validators."""
    schema = schema_of(target)
    fast, thorough = jsonschema_rs.validator_for(schema), jsonschema.Draft202012Validator(schema)

    def is_valid(config: object) -> bool:
        valid: bool = fast.is_valid(config)
        assert valid == thorough.is_valid(config), f"the two validators disagree about {config}"
        return valid

    return is_valid


def read(path: Path) -> Any:
    """Return a sample as data."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("target", "path"), samples.of("good"), ids=samples.name)
def test_configs_of_the_official_code_are_valid(target: str, path: Path) -> None:
    """The schema accepts every config that Google's and Kubernetes' own code accepts."""
    assert validator_of(target)(read(path))


@pytest.mark.parametrize(("target", "path"), samples.of("bad", "missed"), ids=samples.name)
def test_wrong_configs_are_refused(target: str, path: Path) -> None:
    """The schema refuses what the official code refuses, and mistakes which that code misses."""
    assert not validator_of(target)(read(path))


@pytest.mark.parametrize(("target", "path"), samples.of("good"), ids=samples.name)
def test_any_single_mistake_is_refused(target: str, path: Path) -> None:
    """A field in another spelling, a wrong enum value, a null or a wrong type is refused at every level."""
    is_valid, schema, config = validator_of(target), schema_of(target), read(path)
    mistakes = list(_mistakes(config, schema))
    accepted = [f"{'.'.join(map(str, field))}: {what}" for field, what, changed in mistakes if is_valid(changed)]
    assert mistakes
    assert accepted == []


def _mistakes(config: Any, schema: dict[str, Any]) -> Iterator[tuple[FieldPath, str, Any]]:
    for parent, key, field in _fields(config, schema, schema, ()):
        value = _at(config, parent)[key]
        for name in sorted({f"{key}x", key.upper(), re.sub("([A-Z])", r"_\1", key).lower()} - {key}):
            yield (*parent, key), f"named {name}", _changed(config, parent, key, {name: value})
        values: list[object] = [None, {"nonsense": {}}, [[1]], *(["NONSENSE"] if "enum" in field else [])]
        for wrong in values:
            yield (*parent, key), f"is {wrong}", _changed(config, parent, key, {key: wrong})


def _fields(
    value: Any,
    part: dict[str, Any],
    schema: dict[str, Any],
    parent: FieldPath,
) -> Iterator[tuple[FieldPath, str, dict[str, Any]]]:
    """Yield the parent's path, the name and the schema of every field; the keys of a map are no fields."""
    rule = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _fields(item, rule["items"], schema, (*parent, index))
    elif isinstance(value, dict) and "properties" in rule:
        for key, item in value.items():
            yield parent, key, rule["properties"][key]
            yield from _fields(item, rule["properties"][key], schema, (*parent, key))


def _at(config: Any, path: FieldPath) -> Any:
    for step in path:
        config = config[step]
    return config


def _changed(config: Any, parent: FieldPath, key: str, field: dict[str, Any]) -> Any:
    changed = copy.deepcopy(config)
    mapping = _at(changed, parent)
    del mapping[key]
    mapping.update(field)
    return changed


@pytest.mark.parametrize("target", MODULES)
def test_each_schema_is_valid_and_closed(target: str) -> None:
    """Each file is a valid schema of draft 2020-12 that names its source, and every object in it is closed."""
    schema = schema_of(target)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert re.search(r"api_schemas\.py from (google-api-python-client|kubernetes) [0-9]+\.", schema["$comment"])
    objects = [part for part in _parts(schema) if part.get("type") == "object"]
    assert objects
    assert all(part["additionalProperties"] is False or "properties" not in part for part in objects)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _parts(inner)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Required. The name, e.g. of a job. Must be new.", "The name, e.g. of a job."),
        (
            "Optional. Immutable. See the [list of types](https://x.y/z) for more. Or not.",
            "See the list of types for more.",
        ),
        ("Deprecated: Use `b`. It went.", "Use `b`."),
        ("word " * 40, "word " * 30 + "…"),
        ("", ""),
    ],
)
def test_a_description_is_one_short_sentence(description: str, expected: str) -> None:
    """A description is the first sentence, without markers and links; a long one is cut at a word."""
    assert apischema.short(description) == expected


def test_the_committed_files_are_current(capsys: pytest.CaptureFixture[str]) -> None:
    """`tools/api_schemas.py --check` finds no difference and prints nothing."""
    assert api_schemas.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_changed_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` prints the file that differs and the command that writes it; without it, the file is written."""
    shutil.copytree(api_schemas.SCHEMA_DIR, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(api_schemas, "SCHEMA_DIR", tmp_path)
    changed = tmp_path / "gke.schema.json"
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace('"JobSet"', '"Jobset"'), encoding="utf-8")
    assert api_schemas.main(["--check"]) == 1
    stderr = capsys.readouterr().err
    assert "schema/gke.schema.json is not what" in stderr
    assert "vertex-ai" not in stderr
    assert "python tools/api_schemas.py" in stderr
    assert api_schemas.main([]) == 0
    assert changed.read_text(encoding="utf-8") == text
