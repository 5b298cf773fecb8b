"""Configs for GKE by the newest and the oldest release of JobSet."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from jobs import compiled
from official import gke, samples
from tpucfg.render.config import Config
from tpucfg.render.pipeline import render_configs
from tpucfg.targets.objects import json_value

pytestmark = pytest.mark.official

EAST = {"region": "us-east5", "kube_context": "c", "labels": {"team": "vision"}}
TRAINER: dict[str, Any] = {
    "secrets": {"HF_TOKEN": "hf/3", "WANDB_API_KEY": "projects/shared/secrets/wandb/versions/7"},
    "mounts": {"/ckpt": "${bucket}", "/data": "gs://public/c4/en"},
    "xla_flags": {"v6e": ["--a=true"]},
    "restarts": 3,
    "max_run_duration": "12h",
}
CAPACITIES: tuple[Any, ...] = (
    "on-demand",
    "spot",
    "flex-start",
    {"reservation": "projects/my-project/reservations/tpu"},
)
OPTIONS: dict[str, Any] = {"queue": "tpu", "priority": "high", "image_pull_secrets": ["registry"]}
NEWER = samples.FOLDER / "gke" / "good" / "newer-release.yaml"


def configs() -> Iterator[Config]:
    """Yield configs with every setting, of every capacity, of one slice and several."""
    for capacity in CAPACITIES:
        for size in ("v6e-1", "v6e-16", "v6e-16x2", "v6e-256x3"):
            spec = compiled(
                "gke", size, environment=EAST, trainer=TRAINER, options=OPTIONS, capacity=capacity
            )
            yield from render_configs(spec)
    yield from render_configs(compiled("gke", "v6e-16", environment=EAST, trainer={"restarts": 0}))
    yield from render_configs(
        compiled("gke", "v6e-16", environment=EAST, options={"compute_class": "tpu"})
    )


@pytest.mark.parametrize("release", [gke.NEWEST, gke.OLDEST])
def test_every_setting_is_accepted_by_both_releases(release: str) -> None:
    """The newest and the oldest release of JobSet accept each config, as YAML documents and as a JSON List."""
    rendered = list(configs())
    texts = [config.text for config in rendered]
    texts += [json.dumps(json_value(config.request_body, config.companions)) for config in rendered]
    assert [errors for errors in gke.refusals(texts, release) if errors] == []


@pytest.mark.parametrize("release", [gke.NEWEST, gke.OLDEST])
def test_every_document_of_a_config_is_checked(release: str) -> None:
    """An unknown field, or none of the objects, is refused wherever it is."""
    config = next(configs())
    broken = [
        config.text.replace("provider: gke", "provder: gke"),
        config.text.replace("replicatedJobs:", "replicatedJob:"),
        config.text.replace("team: vision", "team: vision-", 1),
        config.text.partition("---\n")[0],
    ]
    assert all(gke.refusals(broken, release))


def test_the_releases_differ() -> None:
    """Fields of v0.11 and v0.12 are refused by v0.10: the checks above compare two releases."""
    text = NEWER.read_text(encoding="utf-8")
    assert gke.refusals([text], gke.NEWEST) == [[]]
    (refused,) = gke.refusals([text], gke.OLDEST)
    assert refused
