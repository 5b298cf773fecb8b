"""Rendering a job: deterministic texts, and no value of the spec that becomes YAML structure."""

import json
import os
import subprocess
import sys
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reading import READERS, canonical
from spec_factory import ROOT, configs, planned, spec
from tpucfg import __version__
from tpucfg.plan import Job
from tpucfg.render.config import job_hash, render_config
from tpucfg.targets.extra import merged_request_body


def job(**changes: Any) -> Job:
    """Return the first job of a spec."""
    return planned(spec(**changes)).jobs[0]


def test_the_header_names_the_job_and_the_tool() -> None:
    """The header has the version, environment, size, target and job hash, and neither a date nor a host name."""
    lines = configs(spec(name="mnist"), sizes=("v2-32",))[0].text.splitlines()
    assert (
        lines[0]
        == f"# Made by tpucfg {__version__}: mnist, environment dev, size v2-32, target vertex-ai."
    )
    assert lines[1].startswith("# To change this file, edit the spec and render again. Job ")
    assert lines[2] == "# v2-32: 16 chips, 32 cores, topology 4x4, 4 hosts."


def test_rendering_twice_gives_the_same_bytes() -> None:
    """Two processes with different hash seeds write equal configs."""
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
def test_no_name_breaks_out_of_the_header(hostile: str) -> None:
    """A line break or a template in a name leaves the rendered request body unchanged."""
    plain = job()
    hostile_job = plain._replace(
        project=hostile, environment=plain.environment._replace(name=hostile)
    )
    request_body = merged_request_body(hostile_job).body
    text = render_config(hostile_job, request_body).text
    expected = dict.fromkeys(READERS, canonical(request_body))
    assert {name: canonical(read(text)) for name, read in READERS.items()} == expected


@given(
    st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], max_codepoint=0xFFFF), max_size=60)
)
def test_a_text_of_the_spec_reaches_the_config_unchanged(value: str) -> None:
    """Braces, quotes and YAML syntax in args and env are text in the config."""
    value = value.replace("${", "$ {").replace(
        "$(", "$ ("
    )  # a placeholder, and what services expand in variables
    (config, *_) = configs(spec(trainer__args={"a": value}, trainer__env={"A": value}))
    for read in READERS.values():
        program = read(config.text)["workerPoolSpecs"][0]["containerSpec"]
        assert program["args"][0] == f"--a={value}"
        assert program["env"] == [{"name": "A", "value": value}]


def test_a_comment_in_the_spec_changes_no_config() -> None:
    """The hash covers the resolved job, not the text of the spec."""
    data = json.dumps(spec(), indent=1)
    plain, commented = configs(data), configs(data.replace("{\n", "{ # a word about it\n", 1))
    assert [config.text for config in plain] == [config.text for config in commented]


@pytest.mark.parametrize(
    "change",
    [
        {"trainer__image": "r.io/other:1"},
        {"training__batch_size": 2048},
        {"training__train_steps": 4001},
        {"trainer__args": {"a": "b"}},
        {"trainer__env": {"A": "b"}},
        {"name": "other"},
        {"trainer__max_run_duration": "60s"},
        {
            "targets": {
                "vertex-ai": {"extra": {"labels": {}, "scheduling": {"maxWaitDuration": "60s"}}}
            }
        },
        {"environments__dev__bucket": "another-bucket"},
    ],
)
def test_the_hash_changes_with_the_request_body(change: dict[str, Any]) -> None:
    """A change of the spec that reaches the request body changes the hash in the header."""
    before, after = job(), job(**change)
    assert merged_request_body(before).body != merged_request_body(after).body
    assert job_hash(before, merged_request_body(before).body) != job_hash(
        after, merged_request_body(after).body
    )


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
def test_the_hash_ignores_what_the_job_does_not_use(change: dict[str, Any]) -> None:
    """Settings of the infrastructure, other rungs or other targets leave the config of a job unchanged."""
    before, after = job(), job(**change)
    texts = [render_config(each, merged_request_body(each).body).text for each in (before, after)]
    assert texts[0] == texts[1]


@given(st.permutations(["machineSpec", "replicaCount", "containerSpec"]))
def test_the_order_of_a_mapping_is_not_part_of_the_hash(order: list[str]) -> None:
    """Request bodies whose fields differ only in order have the same hash."""
    job_ = job()
    request_body = merged_request_body(job_).body
    pool = request_body["workerPoolSpecs"][0]
    reordered = {
        **request_body,
        "workerPoolSpecs": [{key: pool[key] for key in order if key in pool}],
    }
    assert job_hash(job_, request_body) == job_hash(job_, reordered)


def test_merging_does_not_change_the_spec() -> None:
    """The jobs of a spec share its `extra`, and merging it into one request body leaves it unchanged."""
    extra: dict[str, Any] = {
        "scheduling": {"restartJobOnWorkerRestart": False},
        "workerPoolSpecs": [{"diskSpec": {}}],
    }
    before = deepcopy(extra)
    first, second = planned(spec(targets={"vertex-ai": {"extra": extra}})).jobs
    assert (
        merged_request_body(first).body["scheduling"]
        == merged_request_body(second).body["scheduling"]
    )
    assert first.options["extra"] == before
