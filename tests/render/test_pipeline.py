"""Job to config: the same bytes for the same job, and nothing from the spec that could become structure."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reading import READERS, canonical
from spec_factory import ROOT, configs, planned, spec
from tpucfg import __version__
from tpucfg.plan import Job
from tpucfg.render.pipeline import build_request_body, job_hash, render_config


def job(**changes: Any) -> Job:
    """The first job of a spec."""
    return planned(spec(**changes)).jobs[0]


def test_the_header_says_what_the_file_is_and_how_to_change_it() -> None:
    """Version, environment, size, target and the job's hash stand above the config; no date and no machine does."""
    lines = configs(spec(name="mnist"), sizes=("v2-32",))[0].text.splitlines()
    assert lines[0] == f"# Made by tpucfg {__version__}: mnist, environment dev, size v2-32, target vertex-ai."
    assert lines[1].startswith("# Change the spec and render again, not this file. Job ")
    assert lines[2] == "# v2-32: 16 chips, 32 cores, topology 4x4, 4 hosts."


def test_rendering_twice_gives_the_same_bytes() -> None:
    """Two processes with different seeds for the order of sets write the same configs."""
    command = [sys.executable, "-m", "tpucfg", "render"]
    texts = [
        subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert texts[0].count(b"# Made by tpucfg") == 9


@pytest.mark.parametrize(
    "hostile", ["x\nevil: 1", "x\r\nevil: 1", "x\x85evil: 1", "x\u2028evil: 1", "{{ 1 }}", "x # y"]
)
def test_nothing_breaks_out_of_the_header(hostile: str) -> None:
    """A name that holds a line break of any kind, or a template, leaves the message as it is."""
    made = job()
    made = made._replace(project=hostile, environment=made.environment._replace(name=hostile))
    message = build_request_body(made)
    text = render_config(made, message).text
    assert {name: canonical(read(text)) for name, read in READERS.items()} == dict.fromkeys(READERS, canonical(message))


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], max_codepoint=0xFFFF), max_size=60))
def test_a_value_of_the_spec_stays_that_value(value: str) -> None:
    """Whatever text stands in args reaches the config as that text: braces, quotes and YAML's signs are no syntax."""
    value = value.replace("${", "$ {")
    (config, *_) = configs(spec(trainer__args={"a": value}, trainer__env={"A": value}))
    for read in READERS.values():
        program = read(config.text)["workerPoolSpecs"][0]["containerSpec"]
        assert program["args"][0] == f"--a={value}"
        assert program["env"] == [{"name": "A", "value": value}]


def test_a_comment_in_the_spec_changes_no_config() -> None:
    """The hash is that of the resolved job, not of the spec's text."""
    data = json.dumps(spec(), indent=1)
    plain, commented = configs(data), configs(data.replace("{\n", "{ # a word about it\n", 1))
    assert [config.text for config in plain] == [config.text for config in commented]


@pytest.mark.parametrize(
    "change",
    [
        {"trainer__image": "other:1"},
        {"training__batch_size": 2048},
        {"training__train_steps": 4001},
        {"trainer__args": {"a": "b"}},
        {"trainer__env": {"A": "b"}},
        {"name": "other"},
        {"targets": {"vertex-ai": {"timeout": "60s"}}},
        {"targets": {"vertex-ai": {"extra": {"labels": {}, "scheduling": {"timeout": "60s"}}}}},
        {"environments__dev__bucket": "another-bucket"},
    ],
)
def test_the_hash_follows_what_the_job_would_do(change: dict[str, Any]) -> None:
    """Every change of the spec that reaches the message changes the hash in the header."""
    before, after = job(), job(**change)
    assert build_request_body(before) != build_request_body(after)
    assert job_hash(before, build_request_body(before)) != job_hash(after, build_request_body(after))


@pytest.mark.parametrize(
    "change",
    [
        {"environments__dev__protect": True},
        {"environments__dev__keep_data": False},
        {"sizes": ["v2-8", "v2-128"]},
        {"allow": {"TPU041": "known"}},
        {"prices": {"v2": 1.0}},
        {"gate": {"min_scaling_efficiency": 0.8}},
        {"targets": {"gke": {"queue": "q"}}},
    ],
)
def test_the_hash_keeps_still_where_the_message_does(change: dict[str, Any]) -> None:
    """What concerns the infrastructure, other rungs or other targets leaves the config of this one as it was."""
    before, after = job(), job(**change)
    assert render_config(before, build_request_body(before)).text == render_config(after, build_request_body(after)).text


@given(st.permutations(["machineSpec", "replicaCount", "containerSpec"]))
def test_the_order_of_a_mapping_is_not_part_of_the_hash(order: list[str]) -> None:
    """Two messages with the same fields in another order mean the same job."""
    made = job()
    message = build_request_body(made)
    pool = message["workerPoolSpecs"][0]
    assert job_hash(made, message) == job_hash(
        made, {**message, "workerPoolSpecs": [{key: pool[key] for key in order if key in pool}]}
    )


def test_extra_is_merged_mapping_by_mapping() -> None:
    """Mappings are merged however deep they lie, and what was not named stays as it was."""
    extra = {"scheduling": {"restartJobOnWorkerRestart": True}, "labels": {"a": {"b": 1}}}
    message = build_request_body(job(targets={"vertex-ai": {"timeout": "60s", "extra": extra}}))
    assert message["scheduling"] == {"timeout": "60s", "restartJobOnWorkerRestart": True}
    assert message["labels"] == {"a": {"b": 1}}
    assert list(message) == ["workerPoolSpecs", "scheduling", "serviceAccount", "baseOutputDirectory", "labels"]


@pytest.mark.parametrize("value", [[{"replicaCount": 2}], [], "x", None, 1])
def test_extra_replaces_whatever_is_no_mapping(value: object) -> None:
    """A list is replaced as a whole, and a value of another kind takes the place of a mapping."""
    assert build_request_body(job(targets={"vertex-ai": {"extra": {"workerPoolSpecs": value}}}))["workerPoolSpecs"] == value
    merged = build_request_body(job(targets={"vertex-ai": {"extra": {"baseOutputDirectory": value}}}))
    assert merged["baseOutputDirectory"] == value


def test_the_spec_itself_is_not_changed_by_merging() -> None:
    """Jobs share the spec's `extra`, so a merge makes new mappings."""
    extra: dict[str, Any] = {"scheduling": {"disableRetries": True}}
    first, second = planned(spec(targets={"vertex-ai": {"timeout": "60s", "extra": extra}})).jobs
    assert build_request_body(first)["scheduling"] == build_request_body(second)["scheduling"]
    assert first.options["extra"] == extra
