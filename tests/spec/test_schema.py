"""The schema of the spec explains every field, and the two validators agree on any data."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import example, given
from jsonschema import Draft202012Validator

from spec_factory import ROOT, finding_with_id, loaded, spec
from strategies import corpus, mutated
from tpucfg import schemas
from tpucfg.schemas import resolve_references
from tpucfg.schemas.error_context import strict_validator

Schema = Mapping[str, Any]
SCHEMA: Schema = schemas.load_schema("tpucfg")
NAMES = ["tpucfg", "vertex-ai", "ai-platform", "cloud-tpu", "compute-engine", "gke"]


def fields(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield the path and the schema of every field, named or not; references are not followed."""
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}".lstrip("."), below
        yield from fields(below, f"{path}.{name}")
    for keyword, step in (("additionalProperties", ".<any>"), ("items", "[]")):
        if isinstance(below := schema.get(keyword), dict):
            yield f"{path}{step}".lstrip("."), below
            yield from fields(below, f"{path}{step}")


FIELDS = dict(
    [*fields(SCHEMA), *SCHEMA["$defs"].items()]
    + [
        (f"{name}.{key}", field)
        for name, below in SCHEMA["$defs"].items()
        for key, field in fields(below)
    ]
)


def resolved(schema: Schema) -> dict[str, Any]:
    """Return the schema merged with its reference; keys beside the reference have priority."""
    return dict(resolve_references(SCHEMA, schema))


@pytest.mark.parametrize("name", [*NAMES, "catalog", "record"])
def test_every_schema_is_valid(name: str) -> None:
    """Both libraries accept each schema by the meta-schema of draft 2020-12."""
    schema = json.loads((ROOT / "schema" / f"{name}.schema.json").read_text())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    jsonschema_rs.meta.validate(schema)


def test_every_field_is_explained() -> None:
    """Every field has a title, a sentence and an example for editors to show."""
    for path, field in FIELDS.items():
        schema = resolved(field)
        assert schema["title"], path
        assert schema["description"].endswith((".", ":", ")")), f"{path}: a sentence"
        assert schema["examples"], path


def test_every_example_is_valid() -> None:
    """Each example and each default of a field is valid."""
    for path, field in FIELDS.items():
        schema = resolved(field)
        validator = Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]})
        values = [*schema["examples"], *([schema["default"]] if "default" in schema else [])]
        assert [
            error.message for value in values for error in validator.iter_errors(value)
        ] == [], path


def test_every_object_is_closed() -> None:
    """An unknown key is an error everywhere but in `extra`, whose fields the service defines."""
    for path, field in FIELDS.items():
        schema = resolved(field)
        if schema.get("type") == "object" and not path.endswith("extra"):
            assert schema.get("additionalProperties") is not None, path


def patterns(schema: Any) -> Iterator[str]:
    """Yield every regular expression in a schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for below in schema.values():
            yield from patterns(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from patterns(below)


def test_patterns_match_the_whole_text() -> None:
    """No pattern matches a part of a text, or a text with a control character."""
    for pattern in {*patterns(SCHEMA)}:
        assert pattern.startswith("^")
        assert pattern.endswith("$")
        for char in "\0\n\r\x1b":
            assert not re.search(re.sub(r"\$$", r"\\Z", pattern), f"a{char}"), pattern


def is_valid_to_jsonschema(name: str, data: Any) -> bool:
    """Return True if jsonschema, which explains the mistakes, finds none."""
    return not list(strict_validator(name).iter_errors(data))


@pytest.mark.parametrize(
    "path",
    [
        "name",
        "environments__dev__project",
        "environments__dev__region",
        "trainer__image",
        "training__tuned_on",
    ],
)
def test_a_final_line_break_is_refused(path: str) -> None:
    """Neither validator ignores a final line break, as `$` does in Python."""
    *above, last = path.split("__")
    for end in ("\n", "\r", "\x85", "\u2028", " ", "\0"):
        data = spec()
        inner: Any = data
        for key in above:
            inner = inner[key]
        inner[last] += end
        assert not schemas.is_valid("tpucfg", data), repr(end)
        assert not is_valid_to_jsonschema("tpucfg", data), repr(end)


def test_both_validators_agree_on_the_corpus() -> None:
    """The validators agree on every spec and config of the repository."""
    assert len(corpus()) > 40
    for name, data in corpus():
        assert schemas.is_valid(name, data) == is_valid_to_jsonschema(name, data), (name, data)


@pytest.mark.slow
@given(mutated())
@example(("tpucfg", spec(version=1.0)))
@example(("tpucfg", spec(version=True)))
@example(("tpucfg", spec(training__batch_size=1024.0)))
@example(("tpucfg", spec(training__batch_size=10**15)))
@example(("tpucfg", spec(training__batch_size=10**15 + 1)))
@example(("tpucfg", spec(training__batch_size=1e15)))
@example(("tpucfg", spec(training__batch_size=1e300)))
@example(("tpucfg", spec(training__learning_rate=5e-324)))
@example(("tpucfg", spec(training__learning_rate=0.0)))
@example(("tpucfg", spec(training__learning_rate=-0.0)))
@example(("tpucfg", spec(trainer__args={"a": "😀" * 8192})))
@example(("tpucfg", spec(trainer__args={"a": "😀" * 8193})))
def test_both_validators_agree_on_mutated_data(case: tuple[str, Any]) -> None:
    """jsonschema-rs accepts exactly the data in which jsonschema finds no error."""
    name, data = case
    assert schemas.is_valid(name, data) == is_valid_to_jsonschema(name, data)


@pytest.mark.slow
@given(mutated())
@example(("tpucfg", spec(training=None)))
@example(("tpucfg", spec(training=[])))
@example(("tpucfg", spec(trainer="x")))
def test_invalid_data_has_at_least_one_problem(case: tuple[str, Any]) -> None:
    """Invalid data has problems of one printable line each, and never two at one path."""
    name, data = case
    problems = schemas.schema_problems(
        name, data, schemas.SPEC if name == "tpucfg" else schemas.CONFIG
    )
    assert bool(problems) != schemas.is_valid(name, data)
    assert len({(problem.path, problem.at_key) for problem in problems}) == len(problems)
    for problem in problems:
        assert problem.message.isprintable()
        assert len(problem.message) < 500


@pytest.mark.parametrize(
    ("change", "id_", "message", "help_"),
    [
        (
            {"trainer__images": "x"},
            "TPU004",
            "trainer has no key images",
            "delete images: trainer.image is already",
        ),
        (
            {"training__Grad-Accum": 1},
            "TPU004",
            "training has no key Grad-Accum",
            "did you mean grad_accum?",
        ),
        ({"zzz": 1}, "TPU004", "the file has no key zzz", "delete zzz"),
        (
            {"target": "vertexai"},
            "TPU007",
            'target is "vertexai"; it takes ai-platform, vertex-ai',
            "did you mean vertex-ai?",
        ),
        ({"target": 8}, "TPU007", "target is 8; it takes ai-platform, vertex-ai", ""),
        (
            {"training__batch_size": "1024"},
            "TPU006",
            'training.batch_size is "1024", which is text; it takes a whole number',
            "",
        ),
        (
            {"training__batch_size": 10.5},
            "TPU006",
            "training.batch_size is 10.5, which is a number; it takes a whole number",
            "",
        ),
        (
            {"training__batch_size": 0},
            "TPU007",
            "training.batch_size is 0; the minimum is 1",
            "for example: batch_size: 1024",
        ),
        (
            {"trainer__runtime": 2.2},
            "TPU006",
            "trainer.runtime is 2.2, which is a number; it takes text",
            'write "2.2"',
        ),
        (
            {"trainer": None},
            "TPU006",
            "trainer is null; it takes a mapping",
            "for example: trainer: {image: ",
        ),
        ({"sizes": "v2-8"}, "TPU006", 'sizes is "v2-8", which is text; it takes a list', ""),
        (
            {"sizes": []},
            "TPU007",
            "sizes has 0 items; the minimum is 1",
            "for example: sizes: [v2-8, v2-32",
        ),
        (
            {"tune": {"sizes": ["v2-8", "v2-8"]}},
            "TPU007",
            "tune.sizes has 2 items; no two may be equal",
            "for example: sizes: [",
        ),
        (
            {"prices": {"v2": "1,2"}},
            "TPU006",
            'prices.v2 is "1,2", which is text',
            "for example: v2: ",
        ),
        (
            {"name": "Mnist"},
            "TPU007",
            'name is "Mnist"; a name has 1 to 30 lower-case letters',
            "did you mean mnist?",
        ),
        (
            {"gate": {"min_scaling_efficiency": 0.8, "metric": "m"}},
            "TPU005",
            "gate.metric needs goal and max_drop beside it",
            "",
        ),
    ],
)
def test_a_mistake_is_explained(change: dict[str, Any], id_: str, message: str, help_: str) -> None:
    """The message names the field, its value and the allowed values; the help is the edit."""
    project, findings = loaded(spec(**change))
    assert project is None
    assert len(findings) == 1
    assert finding_with_id(id_, findings).message.startswith(message)
    assert finding_with_id(id_, findings).help.startswith(help_)


def test_a_bad_key_is_located_at_the_key() -> None:
    """The finding about an invalid name names it and its section."""
    _, findings = loaded(
        spec(environments={"Dev": {"project": "my-project", "region": "us-central1"}})
    )
    assert "Dev" in finding_with_id("TPU007", findings).message
    assert "environments" in finding_with_id("TPU007", findings).message
