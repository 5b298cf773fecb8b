"""Every config that the compiler can generate is valid for Google's official client types.

The matrix: target x supported sizes x kind of trainer, in the first or the last listed region of the size. Each cell is
a separate spec, so that only the spec determines the config.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest

import official
from tpucfg.catalog import Catalog, Slice
from tpucfg.render.pipeline import compile_project, render_configs
from tpucfg.spec.parse import project_from_document
from tpucfg.yamldoc.reader import read_text

pytestmark = pytest.mark.official

IMAGE = "us-docker.pkg.dev/my-project/train/mnist:1.0"
PACKAGE = {"package": "gs://my-bucket/trainer-0.1.tar.gz", "module": "trainer.task"}
RUNTIME = {"runtime": "2.2", "python": "3.7"}
RESERVED = {"capacity": {"reservation": "tpu"}}
TRAINERS: Mapping[
    str, Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]]
] = {
    # kind -> (trainer, settings of the target, other settings of the spec)
    "ai-platform": {
        "package": (PACKAGE | RUNTIME, {}, {}),
        "container": ({"image": IMAGE, "worker_image": f"{IMAGE}-tpu", "runtime": "2.2"}, {}, {}),
        "legacy": (PACKAGE | RUNTIME, {"machine": "legacy"}, {}),
        "basic": (PACKAGE | RUNTIME, {"machine": "basic"}, {}),
    },
    "vertex-ai": {
        "container": ({"image": IMAGE, "env": {"MODE": "no"}, "max_run_duration": "1d"}, {}, {}),
        "package": (PACKAGE | {"image": IMAGE}, {}, RESERVED),
    },
    "cloud-tpu": {
        "container": (
            {"image": IMAGE, "env": {"MODE": "on"}},
            {"network": "train"},
            {"capacity": "spot"},
        ),
        "reserved": ({"image": IMAGE}, {}, RESERVED),
    },
    "compute-engine": {
        "container": (
            {"image": IMAGE, "env": {"MODE": "on"}, "max_run_duration": "12h"},
            {"subnetwork": "train", "external_ips": False},
            {"capacity": "flex-start", "allow": {"TPU064": "a Cloud NAT"}},
        ),
        "reserved": ({"image": IMAGE}, {}, RESERVED),
    },
    "gke": {
        "container": (
            {"image": IMAGE, "env": {"TIME": "12:30"}},
            {"queue": "tpu", "priority": "high"},
            RESERVED,
        ),
        "plain": ({"image": IMAGE}, {}, {}),
    },
}
V2_ONLY = ("legacy", "basic")
AI_PLATFORM_REGIONS = ("us-central1", "europe-west4")


def _regions(target: str, slice_: Slice) -> tuple[str, ...]:
    regions = (
        AI_PLATFORM_REGIONS if target == "ai-platform" else slice_.regions() or ("us-central1",)
    )
    return tuple(dict.fromkeys((regions[0], regions[-1])))


def _cells(target: str) -> Iterator[tuple[Slice, str, str]]:
    """Yield each size with each trainer, in turn in the first and in the last region of the size."""
    slices = [slice_ for slice_ in Catalog().all() if target in slice_.targets]
    pairs = product(enumerate(slices), enumerate(TRAINERS[target]))
    for (row, slice_), (column, kind) in pairs:
        if kind not in V2_ONLY or slice_.generation == "v2":
            regions = _regions(target, slice_)
            yield slice_, kind, regions[(row + column) % len(regions)]


def _spec(target: str, slice_: Slice, kind: str, region: str) -> dict[str, Any]:
    trainer, settings, others = TRAINERS[target][kind]
    environment = {
        "project": "my-project",
        "region": region,
        "kube_context": "gke_my-project_train",
    }
    return {
        "version": 1,
        "name": "mnist",
        "target": target,
        "sizes": [slice_.size],
        "environments": {"dev": environment | {"labels": {"team": "vision"}}},
        "trainer": {
            **trainer,
            "args": {"data_dir": "${bucket}/data", "mode": "no", "at": "12:30", "verbose": None},
        },
        "training": {
            "tuned_on": "v2-8",
            "batch_size": 8192,
            "train_steps": 100_000,
            "learning_rate": 0.1,
            "learning_rate_rule": "sqrt",
        },
        "targets": {target: settings},
        **others,
    }


def _text(spec: Mapping[str, Any]) -> str:
    project, findings = project_from_document(read_text(json.dumps(spec), "tpucfg.yaml"))
    assert project is not None, findings
    (config,) = render_configs(compile_project(project, Catalog()))
    return config.text


@pytest.mark.parametrize("target", TRAINERS)
def test_every_config_is_officially_valid(target: str) -> None:
    """For every size and trainer, Google's own code accepts the config."""
    cells = list(_cells(target))
    texts = [_text(_spec(target, *cell)) for cell in cells]
    refused = {
        (slice_.size, kind, region): errors
        for (slice_, kind, region), errors in zip(
            cells, official.all_refusals(target, texts), strict=True
        )
        if errors
    }
    assert not refused
    assert len({slice_.size for slice_, _, _ in cells}) == sum(
        target in slice_.targets for slice_ in Catalog().all()
    )
