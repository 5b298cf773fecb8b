"""Compiling one spec: its configs, or its findings."""

import re
from typing import Any

import pytest
from hypothesis import example, given

from reading import READERS, canonical
from spec_factory import CATALOG, compiled, configs, finding_with_id, ids, loaded, spec
from strategies import mutated
from tpucfg.findings import errors
from tpucfg.findings.formats import REPORTS
from tpucfg.render.pipeline import compile_project, render_configs


@given(mutated(("tpucfg",)))
@example(("tpucfg", spec(training=None)))
@example(("tpucfg", spec(training__learning_rate=1e-300, training__learning_rate_rule="sqrt")))
def test_no_spec_raises_an_exception(case: tuple[str, Any]) -> None:
    """A randomly changed spec has configs that all YAML parsers agree on, or an error that every format can print."""
    project, findings = loaded(case[1])
    if project is not None:
        result = compile_project(project, CATALOG)
        findings = (*findings, *result.findings)
        for config in [] if errors(findings) else render_configs(result):
            # The text of an object is indented wherever it contains the line that separates objects.
            objects = zip(re.split(r"(?<=\n)---\n", config.text), config.documents, strict=True)
            for text, data in objects:
                assert {canonical(read(text)) for read in READERS.values()} == {canonical(data)}
    assert project is not None or errors(findings)
    assert all(report(findings) or not findings for report in REPORTS.values())


def test_findings_of_every_stage_are_sorted_together() -> None:
    """The findings of the plan, the target and the API schema are one list, sorted by location."""
    result = compiled(
        spec(
            sizes=["v2-8", "v2-128"],
            training__train_steps=400,
            targets={"vertex-ai": {"extra": {"scheduling": {"maxWaitDuration": 5}}}},
        )
    )
    assert ids(result.findings) == ["TPU041", "TPU042", "TPU072"]
    assert len(result.request_bodies) == 2


def test_an_allowed_finding_is_a_note_with_its_reason() -> None:
    """An allowed finding is still reported, with the spec's reason, and stops nothing."""
    invalid = spec(environments__dev__region="us-west1")
    assert errors(compiled(invalid).findings)
    result = compiled({**invalid, "allow": {"TPU021": "quota granted"}})
    finding = finding_with_id("TPU021", result.findings)
    assert finding.level == "note"
    assert finding.details[-1] == "allowed by the spec: quota granted"
    assert len(result.request_bodies) == 2


def test_an_allowance_without_a_finding_is_a_warning() -> None:
    """An allowance that no finding needs is a warning, but only if the whole spec was compiled."""
    unused = spec(allow={"TPU021": "quota granted"})
    assert finding_with_id("TPU013", compiled(unused).findings).help == "delete allow.TPU021"
    assert compiled(unused, sizes=("v2-8",)).findings == ()


@pytest.mark.parametrize("size", ["v2-8", "v2-32"])
def test_a_config_does_not_depend_on_the_selection(size: str) -> None:
    """The config of a size is equal, whether it is selected alone or with others."""
    texts = {config.job.size: config.text for config in configs(spec())}
    assert [config.text for config in configs(spec(), sizes=(size,))] == [texts[size]]
