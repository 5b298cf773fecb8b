"""Placeholders are a closed set, filled in once, and only where the documentation says."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spec_factory import SPEC, compiled, ids, loaded, planned, spec, the
from tpucfg.spec.placeholders import PLACEHOLDERS, fill_placeholders

VALUES = {name: f"<{name}>" for name in PLACEHOLDERS}
ALL = " ".join(f"${{{name}}}" for name in PLACEHOLDERS)


def test_every_placeholder_of_a_job() -> None:
    """Each of the nine stands for what its documentation says, on every rung."""
    job = planned(spec(trainer__args={"all": ALL.replace(" ", ",")}), sizes=("v2-32",), run="r1").jobs[0]
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
    }
    assert set(values) == set(PLACEHOLDERS)
    assert job.args[0] == f"--all={','.join(values[name] for name in PLACEHOLDERS)}"


def test_they_are_filled_in_everywhere_they_may_stand() -> None:
    """Args, lists of args, args of an override, env, image, worker_image and package."""
    trainer = {
        "image": "r/${name}:${size}",
        "worker_image": "r/${name}-tpu:${cores}",
        "package": "${bucket}/t.tar.gz",
        "module": "t.task",
        "args": {"a": "${env}", "b": ["${hosts}", "x${size}y"], "c": "old"},
        "env": {"E": "${region}"},
    }
    job = planned(spec(trainer=trainer, overrides={"v2-32": {"args": {"c": "${project}"}}}), sizes=("v2-32",)).jobs[0]
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
def test_filling_in(text: str, filled: str) -> None:
    """`${name}` is looked up, `$${` is `${`, and the signs of every other language are text."""
    assert fill_placeholders(text, VALUES) == filled


@given(st.lists(st.sampled_from(["$${", *VALUES, *"{} :x"]), max_size=12))
def test_filling_in_is_one_pass(parts: list[str]) -> None:
    """A value that looks like a placeholder, or like anything else, arrives as it is: nothing is filled in twice."""
    hostile = {name: f"${{{name}}} $${{ {{{{ 7 * 7 }}}} $(id)" for name in VALUES}
    text = "".join(f"${{{part}}}" if part in VALUES else part for part in parts)
    assert fill_placeholders(text, hostile) == "".join(
        "${" if part == "$${" else hostile.get(part, part) for part in parts
    )


WRONG = {
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
OF_NO_IMAGE = ("${${size}}", "x$${size}${")
"""No image has a brace of its own, or a `$`."""
WHERE: dict[str, Any] = {
    "trainer__args": lambda text: {"a": text},
    "trainer__env": lambda text: {"A": text},
    "trainer__image": lambda text: text,
    "trainer__worker_image": lambda text: text,
    "trainer__package": lambda text: text,
    "overrides": lambda text: {"v2-8": {"args": {"a": text}}},
}


@pytest.mark.parametrize("path", WHERE)
@pytest.mark.parametrize(("text", "help_"), WRONG.items())
def test_an_unknown_or_unclosed_one_is_an_error(path: str, text: str, help_: str) -> None:
    """Wherever placeholders are filled in, one that cannot be is one finding, at its own place."""
    project, found = loaded(spec(**{path: WHERE[path](text)}, trainer__module="t"))
    assert project is None
    if "image" in path and text in OF_NO_IMAGE:
        assert ids(found) == ["TPU007"]
        return
    assert ids(found) == ["TPU009"]
    assert found[0].help.startswith(help_)


@pytest.mark.parametrize(
    "escaped", ['"\\x24{nmae}"', '"\\u0024{nmae}"', '"${nm\\\n  ae}"', "'${nmae}'", ">-\n      ${nmae}\n"]
)
def test_no_way_of_writing_hides_one(escaped: str) -> None:
    """It is the value that counts: an escape or a folded line brings no unknown placeholder past the check."""
    text = yaml.safe_dump(spec(trainer__args={"a": 0}), sort_keys=False).replace("a: 0", f"a: {escaped}")
    assert ids(loaded(text)[1]) == ["TPU009"]


def test_all_that_are_wrong_are_said_at_once() -> None:
    """Each is one finding at its own place, also where two stand in one value."""
    _, found = loaded(spec(trainer__args={"a": "${x1}${x2}", "b": ["ok", "${x3}", "${size"]}))
    assert len(found) == 4
    assert len({finding.location for finding in found}) == 4


NOWHERE_ELSE = {
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


@pytest.mark.parametrize(("path", "id_"), NOWHERE_ELSE.items())
def test_nowhere_else(path: str, id_: str) -> None:
    """In every other field `${name}` is no placeholder, and as text it is refused."""
    inside: Any = {
        "labels": {"a": "${name}"},
        "zones": {"v2-8": "${name}"},
        "flags": {"batch_size": "${name}"},
        "sizes": ["${name}"],
    }
    data = spec(**{path: inside.get(path.rpartition("__")[2], "${name}")})
    _, found = loaded(data)
    assert ids(found or compiled(data).findings) == [id_]


@pytest.mark.parametrize("target", ["vertex-ai", "ai-platform", "cloud-tpu", "gke"])
def test_one_in_extra_is_a_warning(target: str) -> None:
    """`extra` is written as it stands; where it looks as if somebody hoped otherwise, a warning says so."""
    project, found = loaded(spec(targets={target: {"extra": {"a": [{"b": "${name}/x"}], "c": "$(HOME) ${OTHER}"}}}))
    assert project is not None
    assert ids(found) == ["TPU012"]
    assert "extra.a[0].b" in the("TPU012", found).message
    assert project.targets[target]["extra"]["a"] == [{"b": "${name}/x"}]


def test_the_small_spec_has_none() -> None:
    """What the other tests change begins without a finding about placeholders."""
    assert loaded(SPEC)[1] == ()
