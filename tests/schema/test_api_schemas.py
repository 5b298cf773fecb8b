"""The schemas of the API messages: what they take and refuse, and that they are what the script writes."""

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

Place: TypeAlias = tuple[str | int, ...]


def schema_of(target: str) -> dict[str, Any]:
    """Return a committed schema."""
    text = (api_schemas.SCHEMA_DIR / f"{target}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def takes(target: str) -> Any:
    """Return a function that says whether the schema takes a config, in the words of both validators."""
    schema = schema_of(target)
    quick, thorough = jsonschema_rs.validator_for(schema), jsonschema.Draft202012Validator(schema)

    def ask(config: object) -> bool:
        answer: bool = quick.is_valid(config)
        assert answer == thorough.is_valid(config), f"the two validators differ over {config}"
        return answer

    return ask


def read(path: Path) -> Any:
    """Return a sample as data."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("target", "path"), samples.of("good"), ids=samples.name)
def test_what_the_official_code_takes_is_taken(target: str, path: Path) -> None:
    """A config that Google's and Kubernetes' own code takes is taken by the schema."""
    assert takes(target)(read(path))


@pytest.mark.parametrize(("target", "path"), samples.of("bad", "missed"), ids=samples.name)
def test_what_is_wrong_is_refused(target: str, path: Path) -> None:
    """The schema refuses what the official code refuses, and what that misses."""
    assert not takes(target)(read(path))


@pytest.mark.parametrize(("target", "path"), samples.of("good"), ids=samples.name)
def test_one_slip_anywhere_is_refused(target: str, path: Path) -> None:
    """A field in another spelling, a wrong enum value, a null or a wrong type is refused at every level."""
    ask, schema, config = takes(target), schema_of(target), read(path)
    slips = list(_slips(config, schema))
    taken = [f"{'.'.join(map(str, location))}: {what}" for location, what, slip in slips if ask(slip)]
    assert slips
    assert taken == []


def _slips(config: Any, schema: dict[str, Any]) -> Iterator[tuple[Place, str, Any]]:
    for location, key, field in _fields(config, schema, schema, ()):
        value = _at(config, location)[key]
        for name in sorted({f"{key}x", key.upper(), re.sub("([A-Z])", r"_\1", key).lower()} - {key}):
            yield (*location, key), f"named {name}", _changed(config, location, key, {name: value})
        values: list[object] = [None, {"nonsense": {}}, [[1]], *(["NONSENSE"] if "enum" in field else [])]
        for wrong in values:
            yield (*location, key), f"is {wrong}", _changed(config, location, key, {key: wrong})


def _fields(
    value: Any,
    part: dict[str, Any],
    schema: dict[str, Any],
    location: Place,
) -> Iterator[tuple[Place, str, dict[str, Any]]]:
    """Yield the place, the name and the schema of every field in a config; the keys of a map are no fields."""
    message = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _fields(item, message["items"], schema, (*location, index))
    elif isinstance(value, dict) and "properties" in message:
        for key, item in value.items():
            yield location, key, message["properties"][key]
            yield from _fields(item, message["properties"][key], schema, (*location, key))


def _at(config: Any, location: Place) -> Any:
    for step in location:
        config = config[step]
    return config


def _changed(config: Any, location: Place, key: str, field: dict[str, Any]) -> Any:
    changed = copy.deepcopy(config)
    holder = _at(changed, location)
    del holder[key]
    holder.update(field)
    return changed


@pytest.mark.parametrize("target", MODULES)
def test_the_schema_is_one(target: str) -> None:
    """Each file is a valid schema of draft 2020-12, says what it was made from, and every object in it is closed."""
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
    """An editor shows the first sentence, without markers and links, cut at a word where it is long."""
    assert apischema.short(description) == expected


def test_the_committed_files_are_what_the_script_writes(capsys: pytest.CaptureFixture[str]) -> None:
    """`tools/api_schemas.py --check` finds nothing to change and says nothing."""
    assert api_schemas.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_changed_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` names the file that differs and how to write it anew; without it the file is written."""
    shutil.copytree(api_schemas.SCHEMA_DIR, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(api_schemas, "SCHEMA_DIR", tmp_path)
    changed = tmp_path / "gke.schema.json"
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace('"JobSet"', '"Jobset"'), encoding="utf-8")
    assert api_schemas.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "schema/gke.schema.json is not what" in said
    assert "vertex-ai" not in said
    assert "python tools/api_schemas.py" in said
    assert api_schemas.main([]) == 0
    assert changed.read_text(encoding="utf-8") == text
