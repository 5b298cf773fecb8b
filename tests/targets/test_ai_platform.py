"""ai-platform: the configs of Google's guide, and the origin of each field.

The expected configs are those of https://cloud.google.com/ai-platform/training/docs/using-tpus with the values of SPEC.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from ai_platform_specs import (
    ARGS,
    CONTAINER,
    OF_MACHINE,
    PACKAGE,
    SPEC,
    compiled,
    container,
    merged,
    spec,
)
from tpucfg.findings import errors
from tpucfg.paths import first_match
from tpucfg.plan import Job
from tpucfg.render.pipeline import render_configs
from tpucfg.targets import RequestBody, target_named


def body_of(data: dict[str, Any]) -> RequestBody:
    """Return the request body of a spec's only job."""
    result = compiled(data)
    assert not errors(result.findings), result.findings
    ((_, body),) = result.request_bodies
    return body


@pytest.mark.parametrize("machine", OF_MACHINE)
def test_a_package_has_the_guides_config_on_each_machine(machine: str) -> None:
    """The basic tier, a legacy machine and a Compute Engine machine have the fields of the guide."""
    body = body_of(spec(targets={"ai-platform": {"machine": machine}}))
    assert body == {"trainingInput": {**OF_MACHINE[machine], **PACKAGE}}


def test_containers_have_the_guides_config() -> None:
    """Master and worker have their images, and the runtime is the worker's tpuTfVersion instead of runtimeVersion."""
    assert body_of(container()) == {
        "trainingInput": {
            "scaleTier": "CUSTOM",
            "masterType": "n1-highcpu-16",
            "masterConfig": {"imageUri": "gcr.io/my-project/master:1.0"},
            "workerType": "cloud_tpu",
            "workerCount": 1,
            "workerConfig": {
                "imageUri": "gcr.io/my-project/worker:1.0",
                "tpuTfVersion": "2.2",
                "acceleratorConfig": {"type": "TPU_V2", "count": 8},
            },
            "region": "us-central1",
            "args": ARGS,
        }
    }


def test_the_worker_has_the_image_of_the_master() -> None:
    """Without worker_image, the worker has the image of the master."""
    body = body_of(container(worker_image=CONTAINER["image"]))
    assert body["trainingInput"]["workerConfig"]["imageUri"] == "gcr.io/my-project/master:1.0"


def test_v3_differs_only_in_the_accelerator() -> None:
    """v3-8 on the Compute Engine machine differs from v2-8 only in the accelerator's type."""
    v2, v3 = (
        body_of(spec(sizes=[size], training={"tuned_on": size}, trainer={"args": None}))
        for size in ("v2-8", "v3-8")
    )
    assert v3["trainingInput"].pop("workerConfig") == {
        "acceleratorConfig": {"type": "TPU_V3", "count": 8}
    }
    del v2["trainingInput"]["workerConfig"]
    assert v2 == v3


def test_a_package_in_cloud_storage_is_named_in_the_config() -> None:
    """A package in Cloud Storage is in packageUris; a local folder has no URL before gcloud uploads it."""
    body = body_of(spec(trainer={"package": "${bucket}/trainer-0.1.tar.gz"}))
    assert body["trainingInput"]["packageUris"] == [
        "gs://my-project-dev-mnist-dev-us-central1/trainer-0.1.tar.gz"
    ]
    assert "packageUris" not in body_of(spec())["trainingInput"]


def test_labels_are_in_the_config() -> None:
    """The environment's labels are the job's; those of tpucfg are a flag, as the guide's configs have none."""
    labelled = {**SPEC["environments"]["dev"], "labels": {"team": "vision"}}
    assert body_of(spec(environments={"dev": labelled}))["labels"] == {"team": "vision"}


@pytest.mark.parametrize(
    ("data", "quoted"),
    [
        (spec(), ['runtimeVersion: "2.2"', 'pythonVersion: "3.7"']),
        (container(), ['tpuTfVersion: "2.2"']),
    ],
    ids=["package", "containers"],
)
def test_versions_are_text_in_the_config(data: dict[str, Any], quoted: list[str]) -> None:
    """A version is quoted, as gcloud reads a bare 2.2 as a number and refuses it."""
    (config,) = render_configs(compiled(data))
    assert all(line in config.text for line in quoted)


def all_jobs() -> Iterator[tuple[Job, RequestBody]]:
    """Yield the jobs of every machine with every kind of trainer."""
    uploaded = spec(trainer={"package": "gs://b/trainer.tar.gz"})
    limited = spec(trainer={"max_run_duration": "12h"})
    commanded = merged(container(), {"trainer": {"command": ["python3", "task.py"]}})
    for data in (spec(), uploaded, container(), commanded, limited):
        for machine in OF_MACHINE:
            labelled = {"dev": {**SPEC["environments"]["dev"], "labels": {"team": "vision"}}}
            changed = {
                **data,
                "environments": labelled,
                "targets": {"ai-platform": {"machine": machine}},
            }
            yield from compiled(changed).request_bodies


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every scalar."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path


def test_every_field_has_an_origin() -> None:
    """Every written field has an origin, and every origin has a written field."""
    jobs = list(all_jobs())
    assert len(jobs) == 15
    written = {path for _, body in jobs for path in leaves(body)}
    origins = {
        path: first_match(target_named("ai-platform").ORIGINS.items(), path) for path in written
    }
    assert [path for path, origin in origins.items() if origin is None] == []
    assert set(origins.values()) == set(target_named("ai-platform").ORIGINS.values())


def test_the_template_explains_the_origin_of_the_package() -> None:
    """A config for a package has a comment about gcloud's flags, and one for containers has none."""
    expected = "# gcloud reads the package from its flags"
    (package,), (containers,) = (
        list(render_configs(compiled(data))) for data in (spec(), container())
    )
    assert (expected in package.text, expected in containers.text) == (True, False)
