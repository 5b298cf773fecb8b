"""Placeholders are a closed set, filled in once, and only in the documented keys."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spec_factory import SPEC, compiled, finding_with_id, ids, loaded, planned, spec
from tpucfg.spec.placeholders import PLACEHOLDERS, fill_placeholders

VALUES = {name: f"<{name}>" for name in PLACEHOLDERS}
ALL = " ".join(f"${{{name}}}" for name in PLACEHOLDERS)


def test_every_placeholder_has_its_documented_value() -> None:
    """Each placeholder is filled in with the value of the job."""
    data = spec(trainer__args={"all": ALL.replace(" ", ",")}, training__sequence_length=2048)
    job = planned(data, sizes=("v2-32",), run="r1").jobs[0]
    bucket = "gs://my-project-dev-mnist-dev-us-central1"
    values = {
        "project": "my-project-dev",
        "name": "mnist",
        "env": "dev",
        "region": "us-central1",
        "bucket": bucket,
        "job_dir": f"{bucket}/jobs/mnist/v2-32/r1",
        "size": "v2-32",
        "cores": "32",
        "hosts": "4",
        "chips": "16",
        "slices": "1",
        "topology": "4x4",
        "data_parallel": "32",
        "model_parallel": "1",
        "grad_accum": "1",
        "sequence_length": "2048",
        "run_dir": f"{bucket}/runs/mnist/r1",
        "run": "r1",
        "batch_size": "4096",
        "per_device_batch_size": "128",
        "micro_batch": "128",
        "train_steps": "1000",
        "epochs": "",
        "learning_rate": "0.4",
    }
    assert set(values) == set(PLACEHOLDERS)
    assert job.args[0] == f"--all={','.join(values[name] for name in PLACEHOLDERS)}"


def test_placeholders_are_filled_in_in_every_documented_key() -> None:
    """Args, lists of args, args of an override, env, image, worker_image and package are filled in."""
    trainer = {
        "image": "r/${name}:${size}",
        "worker_image": "r/${name}-tpu:${cores}",
        "package": "${bucket}/t.tar.gz",
        "module": "t.task",
        "args": {"a": "${env}", "b": ["${hosts}", "x${size}y"], "c": "old"},
        "env": {"E": "${region}"},
    }
    job = planned(
        spec(trainer=trainer, overrides={"v2-32": {"args": {"c": "${project}"}}}), sizes=("v2-32",)
    ).jobs[0]
    assert (job.image, job.worker_image) == ("r/mnist:v2-32", "r/mnist-tpu:32")
    assert job.package == "gs://my-project-dev-mnist-dev-us-central1/t.tar.gz"
    assert job.args[:4] == ("--a=dev", "--b=4", "--b=xv2-32y", "--c=my-project-dev")
    assert job.env == (("E", "us-central1"),)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("", ""),
        ("plain", "plain"),
        ("${size}", "<size>"),
        ("a${size}b${env}c", "a<size>b<env>c"),
        ("$${size}", "${size}"),
        ("$$${size}", "$${size}"),
        ("$${${size}}", "${<size>}"),
        ("$size {size} $(size) $ {size}", "$size {size} $(size) $ {size}"),
        ("{{ size }} {% x %} `id` $(id) %(size)s", "{{ size }} {% x %} `id` $(id) %(size)s"),
    ],
)
def test_only_placeholders_and_their_escape_are_replaced(text: str, filled: str) -> None:
    """`${name}` is looked up, `$${` becomes `${`, and the syntax of other languages stays text."""
    assert fill_placeholders(text, VALUES) == filled


@given(st.lists(st.sampled_from(["$${", *VALUES, *"{} :x"]), max_size=12))
def test_filling_in_is_one_pass(parts: list[str]) -> None:
    """A value that looks like a placeholder is not filled in again."""
    hostile = {name: f"${{{name}}} $${{ {{{{ 7 * 7 }}}} $(id)" for name in VALUES}
    text = "".join(f"${{{part}}}" if part in VALUES else part for part in parts)
    assert fill_placeholders(text, hostile) == "".join(
        "${" if part == "$${" else hostile.get(part, part) for part in parts
    )


HELP_OF = {
    "${nmae}": "did you mean ${name}?",
    "${BUCKET}": "did you mean ${bucket}?",
    "${job-dir}": "did you mean ${job_dir}?",
    "${}": "write $${} if it is meant as text",
    "${size:-x}": "did you mean ${size}?",
    "${HOME_OF_X}": "write $${HOME_OF_X} if it is meant as text",
    "${${size}}": "did you mean ${size}?",
    "${size": "close it",
    "${size}${": "close it",
    "x$${size}${": "close it",
}
REFUSED_IN_IMAGES = ("${${size}}", "x$${size}${")
"""The pattern of an image refuses these first, as it has no braces and no `$`."""
FILLED_IN: dict[str, Any] = {
    "trainer__args": lambda text: {"a": text},
    "trainer__env": lambda text: {"A": text},
    "trainer__image": lambda text: text,
    "trainer__worker_image": lambda text: text,
    "trainer__package": lambda text: text,
    "overrides": lambda text: {"v2-8": {"args": {"a": text}}},
}


@pytest.mark.parametrize("path", FILLED_IN)
@pytest.mark.parametrize(("text", "help_"), HELP_OF.items())
def test_an_unknown_or_unclosed_placeholder_is_an_error(path: str, text: str, help_: str) -> None:
    """A placeholder that cannot be filled in is one finding, at its own location."""
    project, findings = loaded(spec(**{path: FILLED_IN[path](text)}, trainer__module="t"))
    assert project is None
    if "image" in path and text in REFUSED_IN_IMAGES:
        assert ids(findings) == ["TPU007"]
        return
    assert ids(findings) == ["TPU009"]
    assert findings[0].help.startswith(help_)


@pytest.mark.parametrize(
    "escaped",
    ['"\\x24{nmae}"', '"\\u0024{nmae}"', '"${nm\\\n  ae}"', "'${nmae}'", ">-\n      ${nmae}\n"],
)
def test_no_notation_hides_a_placeholder(escaped: str) -> None:
    """The parsed value is checked, so an escape or a folded line cannot hide an unknown placeholder."""
    text = yaml.safe_dump(spec(trainer__args={"a": 0}), sort_keys=False).replace(
        "a: 0", f"a: {escaped}"
    )
    assert ids(loaded(text)[1]) == ["TPU009"]


def test_every_bad_placeholder_is_reported() -> None:
    """Each bad placeholder is one finding at its own location, even if one value has two."""
    _, findings = loaded(spec(trainer__args={"a": "${x1}${x2}", "b": ["ok", "${x3}", "${size"]}))
    assert len(findings) == 4
    assert len({finding.location for finding in findings}) == 4


NOT_FILLED_IN = {
    "name": "TPU007",
    "environments__dev__project": "TPU007",
    "environments__dev__region": "TPU007",
    "environments__dev__bucket": "TPU028",
    "environments__dev__kube_context": "TPU007",
    "environments__dev__labels": "TPU007",
    "environments__dev__zones": "TPU007",
    "trainer__module": "TPU007",
    "trainer__runtime": "TPU007",
    "trainer__python": "TPU007",
    "training__flags": "TPU007",
    "sizes": "TPU007",
}


@pytest.mark.parametrize(("path", "id_"), NOT_FILLED_IN.items())
def test_a_placeholder_in_any_other_key_is_refused(path: str, id_: str) -> None:
    """In any other key, `${name}` is text, and is refused as such."""
    nested: Any = {
        "labels": {"a": "${name}"},
        "zones": {"v2-8": "${name}"},
        "flags": {"batch_size": "${name}"},
        "sizes": ["${name}"],
    }
    data = spec(**{path: nested.get(path.rpartition("__")[2], "${name}")})
    _, findings = loaded(data)
    assert ids(findings or compiled(data).findings) == [id_]


@pytest.mark.parametrize("target", ["vertex-ai", "ai-platform", "cloud-tpu", "gke"])
def test_a_placeholder_in_extra_is_a_warning(target: str) -> None:
    """`extra` is copied unchanged, so a known placeholder in it is probably a mistake."""
    project, findings = loaded(
        spec(targets={target: {"extra": {"a": [{"b": "${name}/x"}], "c": "$(HOME) ${OTHER}"}}})
    )
    assert project is not None
    assert ids(findings) == ["TPU012"]
    assert "extra.a[0].b" in finding_with_id("TPU012", findings).message
    assert project.base.targets[target]["extra"]["a"] == [{"b": "${name}/x"}]


def test_the_base_spec_has_no_findings() -> None:
    """The spec that the other tests change has no finding itself."""
    assert loaded(SPEC)[1] == ()
