"""Validation of request bodies, of rendered texts, and of config files from elsewhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import pytest
import yaml
from hypothesis import given

from spec_factory import CATALOG, compiled, configs, document, finding_with_id, ids, spec
from strategies import mutated
from tpucfg.findings import Location
from tpucfg.render.config import config_template_engine, round_trip_finding
from tpucfg.render.pipeline import RenderError, config_findings, render_configs
from tpucfg.yamldoc.document import Document, KeyPath
from tpucfg.yamldoc.reader import read_text

FIELDS = "{{ body | others }}"
JOBSET: Final = (
    Path(__file__).parents[1] / "official" / "samples" / "gke" / "good" / "multi-host.yaml"
)
UseTemplate = Callable[[str], None]


@pytest.fixture
def use_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UseTemplate:
    """Replace the template of vertex-ai."""

    def use(source: str) -> None:
        from jinja2 import FileSystemLoader

        (tmp_path / "vertex-ai").mkdir()
        (tmp_path / "vertex-ai" / "config.yaml.j2").write_text(source)
        broken = config_template_engine().overlay(loader=FileSystemLoader(tmp_path), cache_size=0)
        monkeypatch.setattr("tpucfg.render.config._template", broken.get_template)

    return use


def test_a_template_with_every_field_passes(use_template: UseTemplate) -> None:
    """The simplest template is correct: the fields of the request body count, not the comments."""
    use_template(FIELDS)
    assert [config.request_body for config in configs(spec())] == [
        config.request_body for config in configs(spec())
    ]
    assert all(round_trip_finding(config) is None for config in configs(spec()))


def altered(old: str, new: str) -> str:
    """Return the plain template with a text replaced in the rendered fields."""
    return FIELDS.replace("others", f"others | replace({old!r}, {new!r})")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            "{% set dropped = body | value('serviceAccount') %}" + FIELDS, id="drops a field"
        ),
        pytest.param(FIELDS + "labels: {}\n", id="adds a field"),
        pytest.param(FIELDS + "labels:\n", id="adds a field without a value"),
        pytest.param(
            "serviceAccount:{{ body | value('serviceAccount') }}\n" + FIELDS, id="reorders"
        ),
        pytest.param(altered(": 1", ": 1.0"), id="makes a count a fraction"),
        pytest.param(altered(": 1", ": true"), id="makes a count a boolean"),
        pytest.param(altered(": 1", ': "1"'), id="makes a count a text"),
        pytest.param(altered("gs://", "gs:///"), id="alters a value"),
        pytest.param(
            "config:\n" + FIELDS.replace("others", "others | indent(2, true)"), id="nests"
        ),
    ],
)
def test_a_template_that_alters_a_field_is_an_error(use_template: UseTemplate, source: str) -> None:
    """A field dropped, added, moved, retyped or altered is an error at the template, and nothing is rendered."""
    use_template(source)
    with pytest.raises(RenderError) as excinfo:
        configs(spec())
    finding = finding_with_id("TPU079", excinfo.value.findings)
    assert finding.location.file == "templates/vertex-ai/config.yaml.j2"
    assert "mnist-dev-v2-8" in finding.message


@pytest.mark.parametrize(
    ("source", "id_"),
    [
        ("a: [\n", "TPU002"),
        (FIELDS + "serviceAccount: x\n", "TPU003"),
        ("", "TPU002"),
        (FIELDS + "---\na: 1\n", "TPU011"),
    ],
)
def test_a_template_that_renders_no_yaml_is_an_error(
    use_template: UseTemplate, source: str, id_: str
) -> None:
    """A text that is no YAML document, or has a key twice, is reported with the error of the parser."""
    use_template(source)
    with pytest.raises(RenderError) as excinfo:
        configs(spec())
    assert ids(excinfo.value.findings) == [id_]


def test_nothing_is_rendered_from_a_spec_with_errors() -> None:
    """Rendering a spec that did not compile raises its findings."""
    invalid = compiled(spec(sizes=["v2-8", "v9-8"]))
    with pytest.raises(RenderError) as excinfo:
        list(render_configs(invalid))
    assert ids(excinfo.value.findings) == ["TPU020"]


@pytest.mark.parametrize(
    ("extra", "path", "id_", "location"),
    [
        ({"workerPoolSpec": []}, ("workerPoolSpec",), "TPU070", Document.key_location),
        (
            {"scheduling": {"maxWaitDuration": 5}},
            ("scheduling", "maxWaitDuration"),
            "TPU072",
            Document.value_location,
        ),
        # The item is the third of the config, after two of the spec, and the first of `extra`.
        (
            {"workerPoolSpecs": [{"containerSpec": {"env": [{"name": "C", "value": 5}]}}]},
            ("workerPoolSpecs", 0, "containerSpec", "env", 0, "value"),
            "TPU072",
            Document.value_location,
        ),
    ],
)
def test_what_the_api_refuses_is_located_in_extra(
    extra: dict[str, Any],
    path: KeyPath,
    id_: str,
    location: Callable[[Document, KeyPath], Location],
) -> None:
    """An invalid field of `extra` is one finding for all rungs, at the key or value at fault."""
    data = spec(trainer__env={"A": "a", "B": "b"}, targets={"vertex-ai": {"extra": extra}})
    (finding,) = compiled(data).findings
    assert finding.id == id_
    assert finding.location == location(document(data), ("targets", "vertex-ai", "extra", *path))


def test_a_handwritten_config_is_checked_at_its_own_lines() -> None:
    """A mistake in a config file is located in that file, and a correct file has no finding."""
    text = configs(spec())[0].text
    wrong = read_text(text.replace("replicaCount: 1", "replicaCounts: 1"), "config.yaml")
    finding = finding_with_id("TPU070", config_findings(wrong, "vertex-ai", CATALOG))
    assert (finding.location.file, finding.location.line) == (
        "config.yaml",
        text[: text.index("replicaCount")].count("\n") + 1,
    )
    assert "replicaCount" in finding.help
    assert config_findings(read_text(text, "config.yaml"), "vertex-ai", CATALOG) == ()


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("", "TPU002"),
        ("- a\n", "TPU072"),
        ("null\n", "TPU072"),
        ("a: [\n", "TPU002"),
        ("1", "TPU072"),
    ],
)
def test_a_config_that_is_no_mapping_is_one_finding(text: str, id_: str) -> None:
    """A list, a scalar, an empty file or invalid YAML is one finding and no exception."""
    assert ids(config_findings(read_text(text, "config.yaml"), "vertex-ai", CATALOG)) == [id_]


@given(mutated(("vertex-ai", "ai-platform", "cloud-tpu", "compute-engine", "gke")))
def test_no_config_raises_an_exception(case: tuple[str, Any]) -> None:
    """A randomly changed config has printable findings at lines of its text, or none."""
    target, data = case
    text = json.dumps(data, indent=1)
    for finding in config_findings(read_text(text, "config.yaml"), target, CATALOG):
        assert finding.message.isprintable()
        assert finding.location.line <= text.count("\n") + 1


def test_a_jobset_of_a_cluster_is_valid() -> None:
    """`kubectl get jobset -o yaml` adds fields that only the server writes; any other unknown field is a mistake."""
    jobset = cast("dict[str, Any]", yaml.safe_load(JOBSET.read_text()))
    listing = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [jobset],
        "metadata": {"resourceVersion": ""},
    }
    jobset["metadata"] |= {
        "creationTimestamp": "2026-01-31T08:00:00Z",
        "generation": 1,
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        "resourceVersion": "3",
        "uid": "b6ddd45f",
    }
    jobset["status"] = {"restarts": 0}
    assert config_findings(document(listing), "gke", CATALOG) == ()
    jobset["metadata"]["uuid"] = "b6ddd45f"
    assert ids(config_findings(document(listing), "gke", CATALOG)) == ["TPU070"]


def test_a_jobset_has_a_name_or_lets_the_server_generate_one() -> None:
    """`kubectl create` takes `generateName` in place of a name; without either, it refuses the set."""
    jobset = cast("dict[str, Any]", yaml.safe_load(JOBSET.read_text()))
    del jobset["metadata"]["name"]
    (finding,) = config_findings(document(jobset), "gke", CATALOG)
    assert (finding.id, finding.message) == ("TPU071", "metadata needs name, or generateName")
    jobset["metadata"]["generateName"] = "train-"
    assert config_findings(document(jobset), "gke", CATALOG) == ()
