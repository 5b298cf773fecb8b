"""The schema of the spec explains every field, and its two validators say the same of any data."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import example, given
from jsonschema import Draft202012Validator

from spec_factory import ROOT, loaded, spec, the
from strategies import CORPUS, mutated
from tpucfg import schemas
from tpucfg.schemas.error_context import strict_validator

Schema = Mapping[str, Any]
SCHEMA: Schema = schemas.load_schema("tpucfg")
NAMES = ["tpucfg", "vertex-ai", "ai-platform", "cloud-tpu", "gke"]


def fields(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every field that somebody can write, named or not, with what its schema says; a reference is followed once."""
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}".lstrip("."), below
        yield from fields(below, f"{path}.{name}")
    for keyword, step in (("additionalProperties", ".<any>"), ("items", "[]")):
        if isinstance(below := schema.get(keyword), dict):
            yield f"{path}{step}".lstrip("."), below
            yield from fields(below, f"{path}{step}")


FIELDS = dict(
    [*fields(SCHEMA), *SCHEMA["$defs"].items()]
    + [(f"{name}.{key}", it) for name, below in SCHEMA["$defs"].items() for key, it in fields(below)]
)


def whole(schema: Schema) -> dict[str, Any]:
    """The schema with what it refers to; what stands beside the reference counts."""
    return {**SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], **schema} if "$ref" in schema else dict(schema)


@pytest.mark.parametrize("name", [*NAMES, "catalog", "record"])
def test_every_schema_is_one(name: str) -> None:
    """The meta-schema of draft 2020-12 holds, says each of the two libraries."""
    schema = json.loads((ROOT / "schema" / f"{name}.schema.json").read_text())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    jsonschema_rs.meta.validate(schema)


@pytest.mark.parametrize("path", FIELDS)
def test_every_field_is_explained(path: str) -> None:
    """An editor shows a title, a sentence and an example at each field."""
    schema = whole(FIELDS[path])
    assert schema["title"]
    assert schema["description"].endswith((".", ":", ")")), "a sentence"
    assert schema["examples"]


@pytest.mark.parametrize("path", FIELDS)
def test_every_example_is_right(path: str) -> None:
    """What the schema shows as an example is what it takes; so is each default."""
    schema = whole(FIELDS[path])
    validator = Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]})
    values = [*schema["examples"], *([schema["default"]] if "default" in schema else [])]
    assert [error.message for value in values for error in validator.iter_errors(value)] == []


def test_every_object_is_closed() -> None:
    """A key that is not known is an error everywhere but in `extra`, which belongs to the service."""
    for path, field in FIELDS.items():
        schema = whole(field)
        if schema.get("type") == "object" and not path.endswith("extra"):
            assert schema.get("additionalProperties") is not None, path


def patterns(schema: Any) -> Iterator[str]:
    """Every regular expression in a schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for below in schema.values():
            yield from patterns(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from patterns(below)


@pytest.mark.parametrize("pattern", sorted(set(patterns(SCHEMA))))
def test_patterns_are_about_the_whole_text(pattern: str) -> None:
    """None of them is met by a part of a text, and none of them lets a control character through."""
    assert pattern.startswith("^")
    assert pattern.endswith("$")
    for char in "\0\n\r\x1b":
        assert not re.search(re.sub(r"\$$", r"\\Z", pattern), f"a{char}")


def explained(name: str, data: Any) -> bool:
    """What jsonschema says, which is asked for reasons only where the quick validator says no."""
    return not list(strict_validator(name).iter_errors(data))


@pytest.mark.parametrize(
    "path", ["name", "environments__dev__project", "environments__dev__region", "trainer__image", "training__tuned_on"]
)
@pytest.mark.parametrize("end", ["\n", "\r", "\x85", "\u2028", " ", "\0"])
def test_nothing_hides_behind_a_line_break(path: str, end: str) -> None:
    """Python's `$` would overlook a last line break; neither validator does."""
    data = spec()
    *above, last = path.split("__")
    inner: Any = data
    for key in above:
        inner = inner[key]
    inner[last] += end
    assert not schemas.is_valid("tpucfg", data)
    assert not explained("tpucfg", data)


def test_both_validators_agree_on_the_corpus() -> None:
    """Every file of the repository that is a spec or a config gets one answer from both."""
    assert len(CORPUS) > 40
    for name, data in CORPUS:
        assert schemas.is_valid(name, data) == explained(name, data), (name, data)


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
def test_both_validators_agree(case: tuple[str, Any]) -> None:
    """The quick one says yes exactly where the explaining one has nothing to explain, whatever stands in a file."""
    name, data = case
    assert schemas.is_valid(name, data) == explained(name, data)


@given(mutated())
@example(("tpucfg", spec(training=None)))
@example(("tpucfg", spec(training=[])))
@example(("tpucfg", spec(trainer="x")))
def test_whatever_does_not_fit_has_its_reasons(case: tuple[str, Any]) -> None:
    """A no comes with at least one finding: a sentence of one line, a place, and never two for one place."""
    name, data = case
    problems = schemas.schema_problems(name, data, schemas.SPEC if name == "tpucfg" else schemas.CONFIG)
    assert bool(problems) != schemas.is_valid(name, data)
    assert len({(problem.path, problem.at_key) for problem in problems}) == len(problems)
    for problem in problems:
        assert problem.message.isprintable()
        assert len(problem.message) < 500


@pytest.mark.parametrize(
    ("change", "id_", "message", "help_"),
    [
        ({"trainer__images": "x"}, "TPU004", "trainer has no key images", "delete images: image is there already"),
        ({"training__Learning-Rate": 1}, "TPU004", "training has no key Learning-Rate", "did you mean learning_rate?"),
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
            "training.batch_size is 0; the least is 1",
            "for example: batch_size: 1024",
        ),
        (
            {"trainer__runtime": 2.2},
            "TPU006",
            "trainer.runtime is 2.2, which is a number; it takes text",
            'put it in quotes: "2.2"',
        ),
        ({"trainer": None}, "TPU006", "trainer is null; it takes a mapping", "for example: trainer: {image: "),
        ({"sizes": "v2-8"}, "TPU006", 'sizes is "v2-8", which is text; it takes a list', ""),
        ({"sizes": []}, "TPU007", "sizes is an empty list", "for example: sizes: [v2-8, v2-32"),
        ({"name": "Mnist"}, "TPU007", 'name is "Mnist": a name has 1 to 30 lower-case letters', "did you mean mnist?"),
        (
            {"gate": {"min_scaling_efficiency": 0.8, "metric": "m"}},
            "TPU005",
            "gate.metric needs goal and max_drop beside it",
            "",
        ),
    ],
)
def test_reasons(change: dict[str, Any], id_: str, message: str, help_: str) -> None:
    """The sentence names the field, the value that was found and what would be taken; the help is the edit."""
    made, found = loaded(spec(**change))
    assert made is None
    assert len(found) == 1
    assert the(id_, found).message.startswith(message)
    assert the(id_, found).help.startswith(help_)


def test_a_mistake_in_a_key_stands_at_the_key() -> None:
    """A name that cannot be one is shown where it is written, with what it would be part of."""
    _, found = loaded(spec(environments={"Dev": {"project": "my-project", "region": "us-central1"}}))
    assert "Dev" in the("TPU007", found).message
    assert "environments" in the("TPU007", found).message
