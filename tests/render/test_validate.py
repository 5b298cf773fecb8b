"""The check of what was rendered, and of what somebody else wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from spec_factory import CATALOG, compiled, configs, ids, spec, the
from strategies import mutated
from tpucfg.findings import Location
from tpucfg.render import pipeline as rendering
from tpucfg.render.pipeline import RenderError, render_configs, round_trip_finding
from tpucfg.render.validate import config_findings
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.document import KeyPath as Steps
from tpucfg.yamldoc.reader import read_text

FIELDS = "{% for key, value in request_body.items() %}\n{{ key | entry(value) }}\n{% endfor %}\n"
Breaking = Callable[[str], None]


@pytest.fixture
def breaking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Breaking:
    """Puts another template in the place of the target's own."""

    def use(source: str) -> None:
        from jinja2 import FileSystemLoader

        (tmp_path / "vertex-ai").mkdir()
        (tmp_path / "vertex-ai" / "config.yaml.j2").write_text(source)
        broken = rendering.config_environment().overlay(loader=FileSystemLoader(tmp_path), cache_size=0)
        monkeypatch.setattr(rendering, "_template", broken.get_template)

    return use


def test_a_template_that_says_it_all_passes(breaking: Breaking) -> None:
    """The plainest template there can be is right: the message is what counts, not its comments."""
    breaking(FIELDS)
    assert [config.request_body for config in configs(spec())] == [config.request_body for config in configs(spec())]
    assert all(round_trip_finding(config) is None for config in configs(spec()))


def altered(old: str, new: str) -> str:
    """The plain template with something else written in the place of what a field says."""
    return FIELDS.replace("entry(value)", f"entry(value) | replace({old!r}, {new!r})")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            FIELDS.replace("request_body.items()", "request_body.items() if key != 'serviceAccount'"), id="drops a field"
        ),
        pytest.param(FIELDS + "labels: {}\n", id="adds a field"),
        pytest.param(FIELDS + "labels:\n", id="adds a field without a value"),
        pytest.param(FIELDS.replace("request_body.items()", "request_body | dictsort"), id="reorders"),
        pytest.param(altered(": 1", ": 1.0"), id="makes a count a fraction"),
        pytest.param(altered(": 1", ": true"), id="makes a count a truth"),
        pytest.param(altered(": 1", ': "1"'), id="makes a count a text"),
        pytest.param(altered("gs://", "gs:///"), id="alters a value"),
        pytest.param("config:\n" + FIELDS.replace("entry(value)", "entry(value) | indent(2, true)"), id="nests"),
    ],
)
def test_a_template_that_says_something_else_is_found(breaking: Breaking, source: str) -> None:
    """A field dropped, added, moved, retyped or with another value stops everything, and the template is named."""
    breaking(source)
    with pytest.raises(RenderError) as caught:
        configs(spec())
    found = the("TPU079", caught.value.findings)
    assert found.location.file == "templates/vertex-ai/config.yaml.j2"
    assert "mnist-dev-v2-8" in found.message


@pytest.mark.parametrize(
    ("source", "id_"),
    [
        ("a: [\n", "TPU002"),
        (FIELDS + "serviceAccount: x\n", "TPU003"),
        ("", "TPU002"),
        (FIELDS + "---\na: 1\n", "TPU011"),
    ],
)
def test_a_text_that_cannot_be_read_is_found(breaking: Breaking, source: str, id_: str) -> None:
    """A template whose text is no YAML, or says a key twice, stops everything too."""
    breaking(source)
    with pytest.raises(RenderError) as caught:
        configs(spec())
    assert ids(caught.value.findings) == [id_]


def test_nothing_is_rendered_from_a_spec_with_errors() -> None:
    """Asking for the texts of what did not compile is refused with the same findings."""
    wrong = compiled(spec(sizes=["v2-8", "v9-8"]))
    with pytest.raises(RenderError) as caught:
        list(render_configs(wrong))
    assert ids(caught.value.findings) == ["TPU020"]


@pytest.mark.parametrize(
    ("path", "value", "id_", "location"),
    [
        (("workerPoolSpec",), [], "TPU070", Document.key),
        (("scheduling", "strategy"), "CHEAP", "TPU073", Document.value),
        (("scheduling", "timeout"), 5, "TPU072", Document.value),
        (("workerPoolSpecs",), [], "TPU074", Document.value),
    ],
)
def test_what_the_api_refuses_is_found_at_the_extra_that_brought_it(
    path: tuple[str, ...], value: object, id_: str, location: Callable[[Document, Steps], Location]
) -> None:
    """Fields of `extra` are checked like all others; the mistake of both rungs is one, at the key or value at fault."""
    extra = {path[0]: {path[1]: value} if len(path) > 1 else value}
    result = compiled(spec(targets={"vertex-ai": {"extra": extra}}))
    assert ids(result.findings) == [id_]
    assert result.findings[0].location == location(
        result.project.document, ("targets", "vertex-ai", "extra", *path)
    )
    assert path[-1] in result.findings[0].message


def test_a_config_of_somebody_else_is_checked_at_its_own_lines() -> None:
    """Every mistake of a handwritten file has its own line, and the rules come once the schema is satisfied."""
    text = configs(spec())[0].text
    document = read_text(text.replace("replicaCount: 1", "replicaCounts: 1"), "config.yaml")
    found = the("TPU070", config_findings(document, "vertex-ai", CATALOG))
    assert (found.location.file, found.location.line) == (
        "config.yaml",
        text[: text.index("replicaCount")].count("\n") + 1,
    )
    assert "replicaCount" in found.help
    assert config_findings(read_text(text, "config.yaml"), "vertex-ai", CATALOG) == ()


@pytest.mark.parametrize(
    ("text", "id_"), [("", "TPU002"), ("- a\n", "TPU072"), ("null\n", "TPU072"), ("a: [\n", "TPU002"), ("1", "TPU072")]
)
def test_a_config_that_is_no_mapping(text: str, id_: str) -> None:
    """A file of another kind, or none, is one finding and no traceback."""
    assert ids(config_findings(read_text(text, "config.yaml"), "vertex-ai", CATALOG)) == [id_]


@given(mutated(("vertex-ai", "ai-platform", "cloud-tpu", "gke")))
def test_no_config_whatever_ends_in_an_exception(case: tuple[str, Any]) -> None:
    """Whatever somebody wrote by hand has findings at its lines, or is right."""
    target, data = case
    text = json.dumps(data, indent=1)
    for found in config_findings(read_text(text, "config.yaml"), target, CATALOG):
        assert found.message.isprintable()
        assert found.location.line <= text.count("\n") + 1
