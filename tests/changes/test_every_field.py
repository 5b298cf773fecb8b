"""No field of a spec can change without a sentence, a caution or a row of the table of rungs."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from spec_changes import compiled_revision, impact
from spec_factory import WITHOUT, spec
from tpucfg.findings import errors
from tpucfg.plan import Job
from tpucfg.spec.project import Environment, Gate, Override, Probe, Project, StepSetting, Training
from tpucfg.spec.settings import Capacity, FitStep, Settings, Trainer

_ENVIRONMENT: Final = {"project": "my-project-dev", "region": "us-central1"}
_GATE: Final = {
    "min_scaling_efficiency": 0.8,
    "metric": "accuracy",
    "goal": "max",
    "max_drop": 0.01,
}


def _environment(**changes: Any) -> dict[str, Any]:
    return spec(environments={"dev": {**_ENVIRONMENT, **changes}})


def _gate(**changes: Any) -> dict[str, Any]:
    return spec(gate={**_GATE, **changes})


_STEPS: Final = {"training__steps": {"warmup_steps": 200, "eval_steps": 100}}
_RATE: Final = {"training__learning_rate": 0.1, "training__learning_rate_rule": "linear"}
_PACKAGE: Final = {
    "package": "gs://b/p-1.tar.gz",
    "module": "a.b",
    "runtime": "1.15",
    "python": "3.7",
}
_IMAGES: Final = {"image": "gcr.io/p/i:1", "worker_image": "gcr.io/p/w:1", "runtime": "2.2"}


def _ai_platform(trainer: Mapping[str, str], **changes: str) -> dict[str, Any]:
    return spec(target="ai-platform", sizes=["v2-8"], trainer={**trainer, **changes})


_V6E: Final = {
    "target": "gke",
    "sizes": ["v6e-8"],
    "training__tuned_on": "v6e-8",
    "environments": {"dev": {**_ENVIRONMENT, "kube_context": "c"}},
}
_GKE: Final = spec(**_V6E)
_TPU7X: Final = {**_V6E, "sizes": ["tpu7x-512"], "training__tuned_on": "tpu7x-512"}
_TOKENS: Final = {
    "training__train_steps": WITHOUT,
    "training__train_tokens": 10**9,
    "training__sequence_length": 128,
}
_BASE: Final = spec()
_FIT_TRAINER: Final = spec(trainer__fit={"step": "trainer.fit:step"})["trainer"]

CHANGES: Final[Mapping[tuple[type[Any], str], tuple[Any, Any]]] = {
    (Project, "name"): (_BASE, spec(name="digits")),
    (Project, "environments"): (
        _BASE,
        spec(environments={"dev": _ENVIRONMENT, "prod": _ENVIRONMENT}),
    ),
    (Project, "overrides"): (_BASE, spec(overrides={"v2-32": {"args": {"x": "1"}}})),
    (Project, "probe"): (_BASE, spec(probe={"steps": 50})),
    (Probe, "steps"): (
        spec(probe={"steps": 50}),
        spec(probe={"steps": 70, "args": {"profiler": "xplane"}}),
    ),
    (Project, "gate"): (_BASE, _gate()),
    (Project, "prices"): (_BASE, spec(prices={"v2": 1.5})),
    (Project, "allow"): (_BASE, spec(allow={"TPU041": "measured"})),
    (Environment, "name"): (_BASE, spec(environments={"test": _ENVIRONMENT})),
    (Environment, "project"): (_BASE, _environment(project="my-other-dev")),
    (Environment, "region"): (_BASE, _environment(region="europe-west4")),
    (Environment, "target"): (_BASE, _environment(target="cloud-tpu")),
    (Environment, "sizes"): (_BASE, _environment(sizes=["v2-8"])),
    (Environment, "bucket"): (_BASE, _environment(bucket="mine")),
    (Environment, "zones"): (
        _environment(target="cloud-tpu"),
        _environment(target="cloud-tpu", zones={"v2-8": "us-central1-f"}),
    ),
    (Environment, "labels"): (_BASE, _environment(labels={"team": "vision"})),
    (Environment, "protect"): (_BASE, _environment(protect=True)),
    (Environment, "keep_data"): (_BASE, _environment(keep_data=False)),
    (Environment, "kube_context"): (_BASE, _environment(kube_context="c")),
    (Environment, "cluster"): (
        _BASE,
        _environment(cluster="projects/my-project-dev/locations/us-central1/clusters/c"),
    ),
    (Environment, "creates_bucket"): (
        _environment(bucket="mine"),
        _environment(bucket={"name": "mine", "create": False}),
    ),
    (Environment, "kms_key"): (
        _BASE,
        _environment(
            kms_key="projects/my-project-dev/locations/us-central1/keyRings/r/cryptoKeys/k"
        ),
    ),
    (Environment, "soft_delete_days"): (_BASE, _environment(soft_delete_days=14)),
    (Environment, "reads"): (_BASE, _environment(reads={"gs://acme-datasets": "us-central1"})),
    (Environment, "grants_images"): (_BASE, _environment(images={"grant": False})),
    (Trainer, "image"): (
        _BASE,
        spec(trainer__image="us-docker.pkg.dev/my-project/train/mnist:2.0"),
    ),
    (Trainer, "worker_image"): (
        _ai_platform(_IMAGES),
        _ai_platform(_IMAGES, worker_image="gcr.io/p/w:2"),
    ),
    (Trainer, "package"): (
        _ai_platform(_PACKAGE),
        _ai_platform(_PACKAGE, package="gs://b/p-2.tar.gz"),
    ),
    (Trainer, "module"): (_ai_platform(_PACKAGE), _ai_platform(_PACKAGE, module="a.c")),
    (Trainer, "command"): (_BASE, spec(trainer__command=["python3", "train.py"])),
    (Trainer, "arg_style"): (_BASE, spec(trainer__arg_style="--key value")),
    (Trainer, "runtime"): (_ai_platform(_IMAGES), _ai_platform(_IMAGES, runtime="2.1")),
    (Trainer, "python"): (_ai_platform(_PACKAGE), _ai_platform(_PACKAGE, python="2.7")),
    (Trainer, "args"): (_BASE, spec(trainer__args={"x": "1"})),
    (Trainer, "env"): (_BASE, spec(trainer__env={"X": "1"})),
    (Trainer, "secrets"): (
        _GKE,
        {**_GKE, "trainer": {**_GKE["trainer"], "secrets": {"HF_TOKEN": "hf/1"}}},
    ),
    (Trainer, "mounts"): (
        _GKE,
        {**_GKE, "trainer": {**_GKE["trainer"], "mounts": {"/data": "${bucket}/data"}}},
    ),
    (Trainer, "xla_flags"): (_BASE, spec(trainer__xla_flags={"v2": ["--xla_a=true"]})),
    (Trainer, "restarts"): (_GKE, {**_GKE, "trainer": {**_GKE["trainer"], "restarts": 3}}),
    (Trainer, "exit_codes"): (
        {**_GKE, "trainer": {**_GKE["trainer"], "restarts": {"times": 3, "exit_codes": [42]}}},
        {
            **_GKE,
            "trainer": {**_GKE["trainer"], "restarts": {"times": 3, "exit_codes": [42, "127-255"]}},
        },
    ),
    (Trainer, "max_run_duration"): (_BASE, spec(trainer__max_run_duration="12h")),
    (Trainer, "fit"): (_BASE, spec(trainer__fit={"step": "trainer.fit:abstract_step"})),
    (Settings, "capacity"): (_GKE, {**_GKE, "capacity": "spot"}),
    (Settings, "targets"): (_GKE, {**_GKE, "targets": {"gke": {"priority": "high"}}}),
    (Capacity, "kind"): (_GKE, {**_GKE, "capacity": "spot"}),
    (Capacity, "is_set"): (_GKE, {**_GKE, "capacity": "on-demand"}),
    (Capacity, "reservation"): (
        {**_GKE, "capacity": {"reservation": "tpus-2026"}},
        {**_GKE, "capacity": {"reservation": "tpus-2027"}},
    ),
    (StepSetting, "value"): (
        spec(**_STEPS),
        spec(training__steps={"warmup_steps": 300, "eval_steps": 100}),
    ),
    (StepSetting, "scaled"): (
        spec(**_STEPS),
        spec(training__steps={"warmup_steps": {"value": 200, "scale": False}, "eval_steps": 100}),
    ),
    (Training, "tuned_on"): (_BASE, spec(training__tuned_on="v2-32")),
    (Training, "batch_size"): (_BASE, spec(training__batch_size=2048)),
    (Training, "per_device_batch_size"): (
        spec(training={"tuned_on": "v2-8", "per_device_batch_size": 128, "train_steps": 4000}),
        spec(training={"tuned_on": "v2-8", "per_device_batch_size": 64, "train_steps": 4000}),
    ),
    (Training, "batch_rule"): (_BASE, spec(training__batch_rule="keep")),
    (Training, "grad_accum"): (_BASE, spec(training__grad_accum=2)),
    (Training, "model_parallel"): (_BASE, spec(training__model_parallel=2)),
    (Training, "sequence_length"): (
        spec(**_TOKENS),
        spec(**{**_TOKENS, "training__sequence_length": 256}),
    ),
    (Training, "train_tokens"): (
        spec(**_TOKENS),
        spec(**{**_TOKENS, "training__train_tokens": 10**10}),
    ),
    (Training, "train_steps"): (_BASE, spec(training__train_steps=8000)),
    (Training, "epochs"): (
        spec(training={"tuned_on": "v2-8", "batch_size": 1024, "epochs": 3}),
        spec(training={"tuned_on": "v2-8", "batch_size": 1024, "epochs": 4}),
    ),
    (Training, "learning_rate"): (_BASE, spec(training__learning_rate=0.2)),
    (Training, "learning_rate_rule"): (
        spec(**_RATE),
        spec(**{**_RATE, "training__learning_rate_rule": "sqrt"}),
    ),
    (Training, "steps"): (
        spec(**_STEPS),
        spec(training__steps={"warmup_steps": 200, "eval_steps": 300}),
    ),
    (Training, "flags"): (_BASE, spec(training__flags={"batch_size": "bs"})),
    (Training, "preset"): (_BASE, spec(training__flags="maxtext")),
    (Override, "batch_size"): (_BASE, spec(overrides={"v2-32": {"batch_size": 2048}})),
    (Override, "per_device_batch_size"): (
        _BASE,
        spec(overrides={"v2-32": {"per_device_batch_size": 64}}),
    ),
    (Override, "learning_rate"): (
        spec(**_RATE),
        spec(**_RATE, overrides={"v2-32": {"learning_rate": 0.2}}),
    ),
    (Override, "machine"): (
        spec(**_V6E),
        spec(**_V6E, overrides={"v6e-8": {"machine": "ct6e-standard-4t"}}),
    ),
    (Override, "steps"): (spec(**_STEPS), spec(**_STEPS, overrides={"v2-32": {"eval_steps": 7}})),
    (Override, "grad_accum"): (_BASE, spec(overrides={"v2-32": {"grad_accum": 2}})),
    (Override, "model_parallel"): (_BASE, spec(overrides={"v2-32": {"model_parallel": 2}})),
    (Override, "topology"): (
        spec(**_TPU7X),
        spec(**_TPU7X, overrides={"tpu7x-512": {"topology": "4x4x16"}}),
    ),
    (Override, "fallback"): (_BASE, spec(overrides={"v2-32": {"fallback": ["v2-8"]}})),
    (Gate, "min_scaling_efficiency"): (_gate(), _gate(min_scaling_efficiency=0.7)),
    (Gate, "metric"): (_gate(), _gate(metric="loss")),
    (Gate, "goal"): (_gate(), _gate(goal="min")),
    (Gate, "max_drop"): (_gate(), _gate(max_drop=0.5)),
    (Gate, "same_image"): (_gate(), _gate(same_image=True)),
    (Gate, "max_usd"): (_gate(), _gate(max_usd=2000)),
    (Gate, "fit"): (
        {**_gate(), "trainer": _FIT_TRAINER},
        {**_gate(fit=True), "trainer": _FIT_TRAINER},
    ),
    (FitStep, "step"): (
        spec(trainer__fit={"step": "a.fit:step"}),
        spec(trainer__fit={"step": "a.fit:other"}),
    ),
    (FitStep, "python"): (
        spec(trainer__fit={"step": "a.fit:step"}),
        spec(trainer__fit={"step": "a.fit:step", "python": ".venv/bin/python"}),
    ),
}
"""A change of each field, as two specs."""
EXEMPT: Final[Mapping[tuple[type[Any], str], str]] = {
    (Project, "settings"): "its fields are listed by themselves",
    (Project, "training"): "its fields are listed by themselves",
    (Settings, "trainer"): "its fields are listed by themselves",
    (Settings, "layers"): "the locations of all settings, which mean nothing by themselves",
    (Settings, "layer_paths"): "the locations of their layers, which mean nothing by themselves",
    (Project, "document"): "the locations of all values, which mean nothing by themselves",
    (Project, "is_probe"): "reviews compare whole runs",
    (Environment, "sizes_path"): "the line that lists the ladder",
}
"""Fields that need no sentence, with the reason."""
_JOB: Final[Mapping[str, str]] = {
    "project": "name",
    "environment": "environments",
    "rung": "training",
    "run": "reviews have no run",
    "whole": "reviews compare whole runs",
    "changes": "reviews have no --set",
    "name": "name",
    "bucket": "bucket",
    "job_dir": "bucket and name",
    "zone": "zones",
    "account": "name and project",
    "image": "image",
    "worker_image": "worker_image",
    "package": "package",
    "module": "module",
    "runtime": "runtime",
    "python": "python",
    "command": "command",
    "flags": "args and flags",
    "args": "args",
    "env": "env",
    "settings": "capacity, trainer and targets",
    "secrets": "secrets",
    "mounts": "mounts",
}
"""The fields of the spec that each field of a job follows from."""


def test_every_field_is_listed() -> None:
    """A new field of the spec needs a case here, and with it a sentence of the review."""
    kinds = (
        Project,
        Environment,
        Settings,
        Capacity,
        Trainer,
        FitStep,
        Training,
        StepSetting,
        Override,
        Gate,
        Probe,
    )
    fields = {(kind, name) for kind in kinds for name in kind._fields}
    assert fields == {*CHANGES, *EXEMPT}
    assert {*Job._fields} == {*_JOB}


@pytest.mark.parametrize("field", CHANGES, ids=lambda field: f"{field[0].__name__}.{field[1]}")
def test_a_changed_field_is_reported(field: tuple[type[Any], str]) -> None:
    """Each field has a statement, or a row in the table of rungs."""
    before, after = CHANGES[field]
    assert [errors(compiled_revision(data).findings) for data in (before, after)] == [(), ()]
    for base, head in ((before, after), (after, before)):
        result = impact(base, head)
        assert result.statements or result.rows
    assert not impact(before, before).statements
