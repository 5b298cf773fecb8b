"""Properties of every `extra`: the target's values stay, and all is free that falsifies nothing of the plan."""

import random
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from extra_fields import fields, random_extra
from extra_jobs import EVERY_JOB, EVERYTHING, merged, planned, value_at
from jobs import CATALOG, leaves
from tpucfg import schemas
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.extra import Merged

EXTRAS: Final = 200
"""Random values of `extra` for each job."""
_POD: Final = r"spec\.replicatedJobs\[=\]\.template\.spec\.template\.spec"
_HOST: Final = r"(instance|instanceTemplate\.properties)"
FALSIFYING: Final[Mapping[str, tuple[str, ...]]] = {
    "vertex-ai": (
        r"persistentResourceId|scheduling\.(strategy|timeout)",
        r"workerPoolSpecs\[\+\]\..*|workerPoolSpecs\[=\]\.machineSpec\..*",
    ),
    "cloud-tpu": (
        r"guaranteed\..*|reservationName|tpu\.nodeSpec\[\+\]\..*",
        r"tpu\.nodeSpec\[=\]\.(multisliceParams|node\.(acceleratorConfig|schedulingConfig))\..*",
    ),
    "compute-engine": (
        rf"{_HOST}\.(scheduling|reservationAffinity|guestAccelerators)\W.*",
        r"instance\.(deletionProtection|sourceMachineImage|params\.requestValidForDuration\..*)",
        r"instanceTemplate\.sourceInstance.*",
        r"instanceGroupManager\.(versions|instance(Flex|Temp)|standby|target(Stopped|Suspended)).*",
    ),
    "ai-platform": (
        r"trainingInput\.((evaluator|parameterServer).*|hyperparameters\..*|scheduling\.maxRunningTime)",
        r"trainingInput\.(masterType|worker(Type|Count)|(master|worker)Config\.acceleratorConfig\..*)",
    ),
    "gke": (
        r"spec\.replicatedJobs\[\+\]\..*|.*\.activeDeadlineSeconds",
        r"metadata\.(labels\.\[kueue.*max-exec-time-seconds|annotations\.\[provreq.*)\]",
        rf"{_POD}\.(hostNetwork|nodeName|resourceClaims.*|nodeSelector\.\[(?!.*nodepool|.*/zone|x\]).*\])",
        # A toleration without a key tolerates every taint.
        rf"{_POD}\.tolerations\[\+\]\.(?!key).*",
        r".*\.\[.*google\.com/(tpu|v3|preemptible-v3)\]|.*resources\.claims.*|.*\[.*gke-tpu-slice-topology\]",
    ),
}
"""The fields by which a job would get other machines, chips, capacity or time, as read from the APIs' documentation."""


def kept(result: Merged, body: RequestBody) -> bool:
    """Return True if a merged body still has every value of the target."""
    return all(value_at(result.body, path) == value_at(body, path) for path in leaves(body))


@pytest.mark.slow
@EVERY_JOB
def test_no_extra_changes_a_value_of_the_target(
    target: str, size: str, changes: dict[str, Any]
) -> None:
    """Whatever a random `extra` sets, every value that the target wrote stays."""
    job_, body = planned(target, size, **changes)
    clean = 0
    for seed in range(EXTRAS):
        extra = random_extra(target, body, random.Random(f"{target} {size} {seed}"))  # noqa: S311 - a repeatable test
        result = merged(job_, body, extra)
        assert kept(result, body), seed
        clean += not result.refusals and result.body != body
    assert clean


@pytest.mark.slow
@EVERY_JOB
def test_only_falsifying_fields_are_refused(
    target: str, size: str, changes: dict[str, Any]
) -> None:
    """A field is refused if the body has it, or if it falsifies the plan; any other one is set and fits the schema."""
    job_, body = planned(target, size, **changes)
    falsifying = re.compile("|".join(FALSIFYING[target]))
    for field in fields(target, body):
        result = merged(job_, body, field.extra)
        ids = {refusal.id for refusal in result.refusals}
        is_further_object = target == "compute-engine" and field.name.partition(".")[0] not in body
        assert kept(result, body), field.name
        if "TPU066" not in ids:
            assert bool(ids) == bool(is_further_object or falsifying.fullmatch(field.name)), (
                field.name
            )
        if not ids:
            assert result.body != body, field.name
            assert schemas.is_valid(target, result.body), field.name


@pytest.mark.slow
def test_every_falsifying_field_is_refused_by_some_job() -> None:
    """No row of the table above is wider than what the targets refuse."""
    matched = set()
    for target, size, changes in EVERYTHING:
        job_, body = planned(target, size, **changes)
        for field in fields(target, body):
            if merged(job_, body, field.extra).refusals:
                matched |= {row for row in FALSIFYING[target] if re.fullmatch(row, field.name)}
    assert matched == {row for rows in FALSIFYING.values() for row in rows}


@pytest.mark.parametrize("target", FALSIFYING)
def test_the_rules_of_the_service_blame_only_extra(target: str) -> None:
    """A problem that the target's rules find in a merged body is at a field of `extra`, never at one of the plan."""
    size = {"gke": "v6e-16", "compute-engine": "v6e-16"}.get(target, "v2-8")
    job_, body = planned(
        target, size, **({"trainer": {"runtime": "2.2"}} if target == "ai-platform" else {})
    )
    assert list(target_named(target).rules(body, CATALOG)) == []
    for field in fields(target, body):
        result = merged(job_, body, field.extra)
        if not result.refusals:
            problems = list(target_named(target).rules(result.body, CATALOG))
            assert all(
                result.source(problem.path) or result.source_below(problem.path)
                for problem in problems
            )
