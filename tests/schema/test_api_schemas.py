"""Schemas of the request bodies: valid and invalid configs, and the script that generates the schemas."""

import copy
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import apischema
import jsonschema
import jsonschema_rs
import pytest
import yaml

from official import MODULES, samples

SCHEMAS = Path(__file__).parents[2] / "schema"
KeyPath: TypeAlias = tuple[str | int, ...]


def schema_of(target: str) -> dict[str, Any]:
    """Return a committed schema."""
    text = (SCHEMAS / f"{target}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def validator_of(target: str) -> Any:
    """Return a function that validates a config with both validators, which have to agree."""
    schema = schema_of(target)
    quick, thorough = jsonschema_rs.validator_for(schema), jsonschema.Draft202012Validator(schema)

    def is_valid(config: object) -> bool:
        valid: bool = quick.is_valid(config)
        assert valid == thorough.is_valid(config), f"the two validators differ over {config}"
        return valid

    return is_valid


def read(path: Path) -> Any:
    """Parse a sample."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("target", "path"), samples.of_kinds("good"), ids=samples.name)
def test_officially_valid_config_is_valid(target: str, path: Path) -> None:
    """A config that Google's and Kubernetes' own code accepts is valid in the schema."""
    assert validator_of(target)(read(path))


@pytest.mark.parametrize(("target", "path"), samples.of_kinds("bad", "missed"), ids=samples.name)
def test_invalid_config_is_rejected(target: str, path: Path) -> None:
    """The schema rejects configs that the official code rejects, and mistakes that it misses."""
    assert not validator_of(target)(read(path))


@pytest.mark.slow
@pytest.mark.parametrize(("target", "path"), samples.of_kinds("good"), ids=samples.name)
def test_single_mutation_is_rejected(target: str, path: Path) -> None:
    """A misspelt field, a wrong enum value, a null or a wrong type is rejected at every level."""
    is_valid, schema, config = validator_of(target), schema_of(target), read(path)
    mutants = list(_mutants(config, schema))
    accepted = [
        f"{'.'.join(map(str, location))}: {mutation}"
        for location, mutation, mutant in mutants
        if is_valid(mutant)
    ]
    assert mutants
    assert accepted == []


def _mutants(config: Any, schema: dict[str, Any]) -> Iterator[tuple[KeyPath, str, Any]]:
    for location, key, field in _fields(config, schema, schema, ()):
        value = _at(config, location)[key]
        for name in sorted(
            {f"{key}x", key.upper(), re.sub("([A-Z])", r"_\1", key).lower()} - {key}
        ):
            yield (*location, key), f"named {name}", _changed(config, location, key, {name: value})
        values: list[object] = [
            None,
            {"nonsense": {}},
            [[1]],
            *(["NONSENSE"] if "enum" in field else []),
        ]
        for wrong in values:
            yield (*location, key), f"is {wrong}", _changed(config, location, key, {key: wrong})


def _fields(
    value: Any,
    part: dict[str, Any],
    schema: dict[str, Any],
    location: KeyPath,
) -> Iterator[tuple[KeyPath, str, dict[str, Any]]]:
    """Yield the path, name and schema of every field in a config; the keys of a map are not fields."""
    message = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _fields(item, message["items"], schema, (*location, index))
    elif isinstance(value, dict) and "properties" in message:
        for key, item in value.items():
            yield location, key, message["properties"][key]
            yield from _fields(item, message["properties"][key], schema, (*location, key))


def _at(config: Any, location: KeyPath) -> Any:
    for step in location:
        config = config[step]
    return config


def _changed(config: Any, location: KeyPath, key: str, field: dict[str, Any]) -> Any:
    changed = copy.deepcopy(config)
    parent = _at(changed, location)
    del parent[key]
    parent.update(field)
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("target", MODULES)
def test_generated_schema_is_valid_and_closed(target: str) -> None:
    """Each file is a valid schema of draft 2020-12, names its source, and has only closed objects."""
    schema = schema_of(target)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert re.search(
        r"api_schemas\.py from (google-api-python-client|kubernetes) [0-9]+\.", schema["$comment"]
    )
    objects = [part for part in _parts(schema) if part.get("type") == "object"]
    assert objects
    assert all(
        part["additionalProperties"] is False or "properties" not in part for part in objects
    )


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
    for inner in (
        schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    ):
        yield from _parts(inner)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Required. The name, e.g. of a job. Must be new.", "The name, e.g. of a job."),
        (
            "Optional. Immutable. See the [list of types](https://x.y/z) for more. Or not.",
            "See the list of types for more.",
        ),
        ("Deprecated: Use `b`. It was removed.", "Use `b`."),
        ("word " * 40, "word " * 30 + "…"),
        ("", ""),
    ],
)
def test_description_is_one_short_sentence(description: str, expected: str) -> None:
    """A description is its first sentence, without markers and links, cut at a word if it is long."""
    assert apischema.short(description) == expected


def test_the_schemas_are_the_generated_ones() -> None:
    """A schema that was edited by hand would accept or refuse other configs than the service does."""
    import api_schemas  # here, as it imports all models of Kubernetes

    assert api_schemas.main(["--check"]) == 0, "run: make schemas"


@pytest.mark.official
def test_changed_schema_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` prints the differing file and the command that writes it; without it, the file is written."""
    import api_schemas  # here, as it imports all models of Kubernetes

    shutil.copytree(SCHEMAS, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(api_schemas, "SCHEMA_DIR", tmp_path)
    changed = tmp_path / "gke.schema.json"
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace('"JobSet"', '"Jobset"'), encoding="utf-8")
    assert api_schemas.main(["--check"]) == 1
    messages = capsys.readouterr().err
    assert "schema/gke.schema.json differs from" in messages
    assert "vertex-ai" not in messages
    assert "python tools/api_schemas.py" in messages
    assert api_schemas.main([]) == 0
    assert changed.read_text(encoding="utf-8") == text
