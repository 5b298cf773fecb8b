"""Properties of every `extra`: what passes changes nothing of the plan, and reaches all that the plan leaves open."""

import random
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from extra_fields import fields, random_extra
from extra_jobs import EVERY_JOB, EVERYTHING, merged, planned, value_at
from jobs import CATALOG, leaves
from plan_facts import plan_facts
from tpucfg import schemas
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.extra import Merged

EXTRAS: Final = 400
"""Random values of `extra` for each job."""

_POD: Final = r"spec\.replicatedJobs\[=\]\.template\.spec\.template\.spec"
_ANY_CONTAINER: Final = rf"{_POD}\.(containers\[.\]|initContainers\[.\]|)\.?"
DECIDED: Final[Mapping[str, tuple[str, ...]]] = {
    "vertex-ai": (
        r"baseOutputDirectory\.outputUriPrefix|persistentResourceId|serviceAccount",
        r"scheduling\.(disableRetries|restartJobOnWorkerRestart|strategy|timeout)",
        r"workerPoolSpecs\[\+\]\..*|workerPoolSpecs\[=\]\.replicaCount",
        r"workerPoolSpecs\[=\]\.machineSpec\..*",
        r"workerPoolSpecs\[=\]\.containerSpec\.(args|command|imageUri|env\[=\]\.value)",
        r"workerPoolSpecs\[=\]\.pythonPackageSpec\..*",
    ),
    "cloud-tpu": (
        r"guaranteed\..*|reservationName",
        r"tpu\.nodeSpec\[\+\]\..*|tpu\.nodeSpec\[=\]\.(multisliceParams\..*|nodeId|parent)",
        r"tpu\.nodeSpec\[=\]\.node\.(acceleratorConfig|networkConfigs|schedulingConfig|serviceAccount)\W.*",
        r"tpu\.nodeSpec\[=\]\.node\.(acceleratorType|runtimeVersion|networkConfig\.(enableExternalIps|network|subnetwork)|tags)",
        r"tpu\.nodeSpec\[=\]\.node\.dataDisks\[=\]\.mode",
        r"tpu\.nodeSpec\[=\]\.node\.metadata\.\[(startup-script|startup-script-url|shutdown-script|user-data|tpu-env)\]",
        r"tpu\.nodeSpec\[=\]\.node\.labels\.\[a\]",
    ),
    "compute-engine": (
        r"(resourcePolicy|instanceTemplate|instanceGroupManager|instance)\.(kind|name)",
        r"(resourcePolicy|instanceTemplate)\.description",
        r"resourcePolicy\.\w+Policy\..*",
        r"instanceTemplate\.sourceInstance.*",
        r"(instanceTemplate\.properties|instance)\.(machineType|guestAccelerators.*|resourcePolicies)",
        r"instance\.(deletionProtection|sourceMachineImage|params\.requestValidForDuration\..*)",
        r"(instanceTemplate\.properties|instance)\.(scheduling|reservationAffinity|serviceAccounts\[.\])\..*",
        r"(instanceTemplate\.properties|instance)\.(disks\[=\]\.(autoDelete|boot|source)|tags\.items)",
        r"(instanceTemplate\.properties|instance)\.disks\[\+\]\.boot",
        r"(instanceTemplate\.properties|instance)\.disks\[=\]\.initializeParams\.(disk(SizeGb|Type)|source(Image|Snapshot))",
        r"(instanceTemplate\.properties|instance)\.networkInterfaces\[.\]\.(ipv6AccessConfigs.*|accessConfigs.*|network|nicType|subnetwork)",
        r"(instanceTemplate\.properties|instance)\.metadata\.items\[=\]\.value",
        r"(instanceTemplate\.properties|instance)\.labels\.\[a\]",
        r"instanceGroupManager\.(allInstancesConfig|auto|base|distribution|instance(Flex|Life|Temp)|resource|standby).*",
        r"instanceGroupManager\.(stateful|target(Size|Stopped|Suspended)|update|versions).*",
    ),
    "ai-platform": (
        r"jobId|trainingInput\.(args|hyperparameters.*|jobDir|packageUris|python.*|region|runtimeVersion|scaleTier)",
        r"trainingInput\.scheduling\.maxRunningTime",
        r"trainingInput\.(evaluator|parameterServer).*|trainingInput\.(serviceAccount|(master|worker)(Type|Count))",
        r"trainingInput\.(master|worker)Config\.(?!diskConfig).*",
    ),
    "gke": (
        r"apiVersion|kind|metadata\.(name|namespace)|spec\.(managedBy|failurePolicy\..*)",
        r"metadata\.labels\.\[(a|kueue\.x-k8s\.io/(queue-name|max-exec-time-seconds))\]",
        r"metadata\.annotations\.\[(alpha\.jobset.*|provreq.*)\]",
        r"spec\.replicatedJobs\[\+\]\..*|spec\.replicatedJobs\[=\]\.replicas",
        r"spec\.replicatedJobs\[=\]\.template\.metadata\.annotations\.\[alpha\.jobset.*\]",
        r"spec\.replicatedJobs\[=\]\.template\.spec\.(activeDeadlineSeconds|backoffLimit.*|comple.*|managedBy|parallelism)",
        r"spec\.replicatedJobs\[=\]\.template\.spec\.(maxFailedIndexes|podFailurePolicy.*|ttlSecondsAfterFinished)",
        r"spec\.replicatedJobs\[=\]\.template\.spec\.template\.metadata\.annotations\.\[(.*slice-topology|gke-gcsfuse/.*|kueue\.x-k8s\.io/podset-.*)\]",
        rf"{_POD}\.(activeDeadlineSeconds|hostNetwork|nodeName|resourceClaims.*|restartPolicy|serviceAccount.*)",
        rf"{_POD}\.priorityClassName",
        rf"{_POD}\.affinity\.nodeAffinity\..*\.matchFields.*",
        rf"{_POD}\.nodeSelector\.\[(?!.*nodepool|x\]).*\]",
        # A toleration without a key tolerates every taint.
        rf"{_POD}\.tolerations\[\+\]\.(?!key).*",
        rf"{_POD}\.overhead\.\[google\.com/tpu\]",
        rf"{_ANY_CONTAINER}resources\.(claims.*|(limits|requests)\.\[.*google\.com/.*\])",
        rf"{_POD}\.containers\[=\]\.(args|command|env\[=\].*|envFrom.*|image|restartPolicy.*|volumeMounts\[=\].*)",
        rf"{_POD}\.volumes\[=\].*",
    ),
}
"""The fields that a plan decides, by target, as read from the APIs' documentation: `extra` reaches all others."""


def kept(result: Merged, body: RequestBody) -> bool:
    """Return True if a merged body still has every value of the target."""
    return all(value_at(result.body, path) == value_at(body, path) for path in leaves(body))


def is_further_object(target: str, body: RequestBody, name: str) -> bool:
    """Return True for a field of an object that the job does not create; `extra` can add none."""
    return target == "compute-engine" and name.partition(".")[0] not in body


@EVERY_JOB
def test_no_extra_changes_what_the_plan_decided(target: str, size: str, changes: dict[str, Any]) -> None:
    """Machines, chips, program, figures, place, account, capacity, deadline and secrets follow from the plan alone."""
    job_, body = planned(target, size, **changes)
    facts, clean = plan_facts(target, body, body), 0
    for seed in range(EXTRAS):
        extra = random_extra(target, body, random.Random(f"{target} {size} {seed}"))  # noqa: S311 - a repeatable test
        result = merged(job_, body, extra)
        assert kept(result, body), seed
        # Even the part of an `extra` that is left beside its refused fields changes nothing.
        if schemas.is_valid(target, result.body):
            assert plan_facts(target, result.body, body) == facts, seed
            clean += not result.refusals and result.body != body
    assert clean


@EVERY_JOB
def test_every_other_field_of_the_message_is_reached(target: str, size: str, changes: dict[str, Any]) -> None:
    """Each field that the plan does not decide can be set, fits the schema, and leaves every other field as it was."""
    job_, body = planned(target, size, **changes)
    facts = plan_facts(target, body, body)
    decided = re.compile("|".join(DECIDED[target]))
    reached = set()
    for field in fields(target, body):
        result = merged(job_, body, field.extra)
        assert kept(result, body), field.name
        if not result.refusals:
            assert result.body != body, field.name
            assert schemas.is_valid(target, result.body), field.name
            assert plan_facts(target, result.body, body) == facts, field.name
            reached.add(field.name)
        else:
            assert decided.fullmatch(field.name) or is_further_object(target, body, field.name), field.name
    assert reached


def test_every_decided_field_is_refused_by_some_job() -> None:
    """No row of the table above is wider than what the targets refuse."""
    matched = set()
    for target, size, changes in EVERYTHING:
        job_, body = planned(target, size, **changes)
        for field in fields(target, body):
            if merged(job_, body, field.extra).refusals:
                matched |= {row for row in DECIDED[target] if re.fullmatch(row, field.name)}
    assert matched == {row for rows in DECIDED.values() for row in rows}


def test_a_toleration_of_any_type_raises_no_exception() -> None:
    """Values that the schema refuses reach the rules of `extra` first, which must not depend on their types."""
    job_, body = planned("gke", "v6e-16")
    for value in (["x"], {"a": 1}, 5, None, ""):
        term = {"matchExpressions": [{"key": value, "operator": "In"}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        pod = {
            "tolerations": [{"key": value}],
            "affinity": {"nodeAffinity": required},
            "containers": [{"name": "trainer", "volumeMounts": [{"name": "x", "mountPath": value}]}],
        }
        template = {"spec": {"template": {"spec": pod}}}
        assert kept(merged(job_, body, {"spec": {"replicatedJobs": [{"name": "slice", "template": template}]}}), body)


def test_settings_of_targets_are_free_until_they_are_set() -> None:
    """The field of a setting such as a network or a priority is decided in the jobs that set it, and free in others."""
    free = r".*\.(networkConfig\.(sub)?network|tags|priorityClassName)|metadata\.labels\.\[.*queue-name\]"
    refused: set[str] = set()
    reached: set[str] = set()
    for target, size, changes in EVERYTHING:
        job_, body = planned(target, size, **changes)
        for field in fields(target, body):
            if re.fullmatch(free, field.name) and "[+]" not in field.name:
                (refused if merged(job_, body, field.extra).refusals else reached).add(field.name)
    assert reached == refused
    assert len(reached) == 5


@pytest.mark.parametrize("target", DECIDED)
def test_the_rules_of_the_service_blame_only_extra(target: str) -> None:
    """A problem that the target's rules find in a merged body is at a field of `extra`, never at one of the plan."""
    size = {"gke": "v6e-16", "compute-engine": "v6e-16"}.get(target, "v2-8")
    job_, body = planned(target, size, **({"trainer": {"runtime": "2.2"}} if target == "ai-platform" else {}))
    assert list(target_named(target).rules(body, CATALOG)) == []
    for field in fields(target, body):
        result = merged(job_, body, field.extra)
        if not result.refusals:
            problems = list(target_named(target).rules(result.body, CATALOG))
            assert all(result.source(problem.path) or result.source_below(problem.path) for problem in problems)
