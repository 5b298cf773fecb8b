"""The whole way of one spec: it compiles, or it is refused in words."""

from typing import Any

import pytest
from hypothesis import example, given

from reading import READERS, canonical
from spec_factory import CATALOG, compiled, configs, document, ids, loaded, spec, the
from strategies import mutated
from tpucfg.findings import errors
from tpucfg.findings.formats import FORMATS, format_named
from tpucfg.render.pipeline import compile_project, render_configs


@given(mutated(("tpucfg",)))
@example(("tpucfg", spec(training=None)))
@example(("tpucfg", spec(training__learning_rate=1e-300, training__learning_rate_rule="sqrt")))
def test_no_spec_whatever_ends_in_an_exception(case: tuple[str, Any]) -> None:
    """A spec changed at random has configs that every reader reads alike, or an error that every format can print."""
    project, found = loaded(case[1])
    if project is not None:
        result = compile_project(project, CATALOG)
        found = (*found, *result.findings)
        for config in [] if errors(found) else render_configs(result):
            assert {canonical(read(config.text)) for read in READERS.values()} == {canonical(config.request_body)}
    assert project is not None or errors(found)
    for name in FORMATS:
        assert (
            bool(format_named(name).report(found, {"tpucfg.yaml": document(case[1]).text})) == bool(found)
            or name != "text"
        )


def test_findings_of_every_stage_come_together() -> None:
    """What the plan warns of, what the target refuses and what the API would say stand in one list, by place."""
    result = compiled(
        spec(
            sizes=["v2-8", "v2-128"],
            training__train_steps=400,
            targets={"vertex-ai": {"extra": {"scheduling": {"strategy": "CHEAP"}}}},
        )
    )
    assert ids(result.findings) == ["TPU041", "TPU042", "TPU073"]
    assert len(result.request_bodies) == 2


def test_an_allowed_finding_is_a_note_with_its_reason() -> None:
    """It is still said, it stops nothing, and the reason stands beside it."""
    wrong = spec(environments__dev__region="us-west1")
    assert errors(compiled(wrong).findings)
    result = compiled({**wrong, "allow": {"TPU021": "quota granted"}})
    found = [finding for finding in result.findings if finding.id == "TPU021"]
    assert [finding.level for finding in found] == ["note"]
    assert all(finding.details[-1] == "allowed by the spec: quota granted" for finding in found)
    assert len(result.request_bodies) == 2


def test_what_is_allowed_and_did_not_occur() -> None:
    """A reason that outlived its finding is a warning, but only where everything was looked at."""
    idle = spec(allow={"TPU021": "quota granted"})
    assert the("TPU013", compiled(idle).findings).help == "delete allow.TPU021"
    assert compiled(idle, sizes=("v2-8",)).findings == ()


@pytest.mark.parametrize("size", ["v2-8", "v2-32"])
def test_one_size_is_the_same_alone_and_among_others(size: str) -> None:
    """What else is selected changes nothing in a config."""
    among = {config.job.size: config.text for config in configs(spec())}
    assert [config.text for config in configs(spec(), sizes=(size,))] == [among[size]]
