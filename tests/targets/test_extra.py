"""Merging `extra` into a request body: it adds what the plan does not decide, and refuses everything else."""

from itertools import product
from typing import Any

import pytest

from extra_jobs import ENV, EVERY_JOB, merged, planned, value_at
from jobs import compiled, job, leaves, parts
from spec_factory import document
from tpucfg.paths import ITEM_NAMES, first_match, item_names, path_with_indices
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.extra import Merged, extra_source, is_harmless, merged_request_body
from tpucfg.yamldoc.document import KeyPath


def extra_at(body: RequestBody, path: KeyPath, value: Any) -> Any:
    """Return an `extra` that sets one field of the request body, with the names of the items on the way to it."""
    for end in range(len(path) - 1, -1, -1):
        step, own = path[end], value_at(body, path[:end])
        if isinstance(step, str):
            value = {step: value}
        elif isinstance(own[step], dict) and (names := item_names(own)):
            value = [{item_name(own): names[step], **value}]
        else:
            value = [{}] * step + [value] if isinstance(value, dict) else [value]
    return value


def item_name(items: list[dict[str, Any]]) -> str:
    """Return the field that names the items of a list."""
    return next(field for field in ITEM_NAMES if all(field in item for item in items))


def names_an_item(body: RequestBody, path: KeyPath) -> bool:
    """Return True for the name of an item: with another one, it is another item."""
    items = value_at(body, path[:-2]) if len(path) > 2 and isinstance(path[-2], int) else []
    return bool(item_names(items)) and path[-1] == item_name(items)


@EVERY_JOB
def test_every_field_that_a_target_writes_is_protected(
    target: str, size: str, changes: dict[str, Any]
) -> None:
    """Setting any rendered field in `extra`, to any value, is refused at that field and changes nothing."""
    job_, body = planned(target, size, **changes)
    for path in leaves(body):
        assert first_match(target_named(target).ORIGINS.items(), path), path
        if names_an_item(body, path) or value_at(body, path) == {}:
            continue
        for value in ("other", None, 7, value_at(body, path)):
            result = merged(job_, body, extra_at(body, path, value))
            assert result.body == body, (path, value)
            assert [refusal.id for refusal in result.refusals] == ["TPU066"], (path, value)
            assert result.refusals[0].field in (path, path[:-1])


@EVERY_JOB
def test_every_mapping_and_list_of_a_target_is_protected(
    target: str, size: str, changes: dict[str, Any]
) -> None:
    """A value of another type, null or an empty list cannot replace a mapping or a list either."""
    job_, body = planned(target, size, **changes)
    inner = {path[:end] for path in leaves(body) for end in range(1, len(path))}
    for path in inner:
        for value in (None, "x", 0, [], ["x"]):
            if not isinstance(path[-1], int):
                result = merged(job_, body, extra_at(body, path, value))
                assert result.body == body
                assert result.refusals


def test_a_refusal_names_the_setting_that_decides_the_field() -> None:
    """The setting is that of the layer which the job uses, and a rule without a setting has its page."""
    options = {
        "extra": {
            "workerPoolSpecs": [
                {"machineSpec": {"machineType": "x"}, "containerSpec": {"args": []}}
            ]
        }
    }
    job_ = job(
        "vertex-ai", "v2-8", options=options, overrides={"v2-8": {"trainer": {"image": "r.io/i:2"}}}
    )
    refusals = {refusal.field[-1]: refusal.keys for refusal in merged_request_body(job_).refusals}
    assert refusals == {"machineType": (("sizes",),), "args": (("trainer", "args"), ("training",))}
    image = {"workerPoolSpecs": [{"containerSpec": {"imageUri": "x"}}]}
    (refusal,) = merged(job_, target_named("vertex-ai").request_body(job_), image).refusals
    assert refusal.keys == (("overrides", "v2-8", "trainer", "image"),)


def pod_extra(**fields: Any) -> dict[str, Any]:
    """Return the `extra` for fields of the pod of a JobSet."""
    template = {"spec": {"template": {"spec": fields}}}
    return {"spec": {"replicatedJobs": [{"name": "slice", "template": template}]}}


def pod_of(result: Merged) -> dict[str, Any]:
    """Return the pod of a merged JobSet."""
    return parts(result.body)[1]


def test_items_merge_by_name() -> None:
    """An item with the name of the target's own gains fields; an item with another name is added after the others."""
    job_, body = planned("gke", "v6e-16", trainer=ENV)
    side, limits = {"name": "side", "image": "i"}, {"memory": "8Gi"}
    own = {"name": "trainer", "env": [{"name": "B", "value": "2"}], "resources": {"limits": limits}}
    result = merged(job_, body, pod_extra(containers=[side, own]))
    first, second = pod_of(result)["containers"]
    before = parts(body)[1]["containers"][0]
    assert (result.refusals, second) == ((), side)
    assert first["env"] == [*before["env"], {"name": "B", "value": "2"}]
    assert first["resources"]["limits"] == {**before["resources"]["limits"], **limits}
    assert {key: first[key] for key in ("image", "args", "volumeMounts")} == {
        key: before[key] for key in ("image", "args", "volumeMounts")
    }


def test_the_source_of_a_merged_field_is_its_place_in_extra() -> None:
    """`why` and findings find a field in `extra`, where items have other positions than in the config."""
    side, own = (
        {"name": "side", "image": "i"},
        {"name": "trainer", "env": [{"name": "B", "value": "2"}]},
    )
    job_ = job("gke", "v6e-16", trainer=ENV, options={"extra": pod_extra(containers=[side, own])})
    pod = ("spec", "replicatedJobs", 0, "template", "spec", "template", "spec")
    extra = ("targets", "gke", "extra", *pod)
    assert extra_source(job_, (*pod, "containers", 1, "image")) == (
        *extra,
        "containers",
        0,
        "image",
    )
    assert extra_source(job_, (*pod, "containers", 0, "env", 3, "value")) == (
        (*extra, "containers", 1, "env", 0, "value")
    )
    assert extra_source(job_, (*pod, "containers", 0, "image")) is None


def test_tolerations_and_mounts_are_added() -> None:
    """A toleration is named by its key, and a mount by its volume."""
    job_, body = planned("gke", "v6e-16")
    toleration, before = {"key": "team", "operator": "Exists"}, parts(body)[1]
    mounts = [{"name": "data", "mountPath": "/data"}]
    extra = pod_extra(
        tolerations=[toleration], containers=[{"name": "trainer", "volumeMounts": mounts}]
    )
    result = merged(job_, body, extra)
    assert result.refusals == ()
    assert pod_of(result)["tolerations"] == [*before["tolerations"], toleration]
    assert pod_of(result)["containers"][0]["volumeMounts"] == [
        *before["containers"][0]["volumeMounts"],
        *mounts,
    ]


def test_an_item_without_a_name_does_not_make_a_list_positional() -> None:
    """A variable of the plan cannot be repeated behind an item without a name."""
    job_, body = planned("gke", "v6e-16", trainer=ENV)
    items = [{}, {"name": "A", "value": "evil"}]
    result = merged(job_, body, pod_extra(containers=[{"name": "trainer", "env": items}]))
    values = [
        item["value"] for item in pod_of(result)["containers"][0]["env"] if item.get("name") == "A"
    ]
    assert (values, [refusal.id for refusal in result.refusals]) == (["1"], ["TPU066"])


def test_items_of_one_name_are_one_item() -> None:
    """The second item of a name adds to the first, and cannot change it."""
    job_, body = planned("gke", "v6e-16")
    first, second = {"name": "side", "image": "a"}, {"name": "side", "image": "b", "tty": True}
    result = merged(job_, body, pod_extra(containers=[first, second]))
    assert pod_of(result)["containers"][1:] == [{**first, "tty": True}]
    (refusal,) = result.refusals
    assert (refusal.id, refusal.source[-2:], refusal.keys) == ("TPU066", (1, "image"), ())


@pytest.mark.parametrize(
    ("path", "harmless"),
    [
        (("metadata", "labels", "team"), True),
        (("metadata", "labels", "kueue.x-k8s.io/queue-name"), False),
        (("metadata", "annotations", "note"), True),
        (("instance", "labels", "team"), True),
        (("spec", "ttlSecondsAfterFinished"), True),
        (("spec", "replicatedJobs", 0, "template", "spec", "ttlSecondsAfterFinished"), False),
        (("spec", "containers", 1, "resources", "requests", "memory"), True),
        (("spec", "containers", 1, "resources", "requests", "ephemeral-storage"), False),
        (("spec", "containers", 1, "resources", "limits", "memory"), False),
        (("spec", "containers", 1, "image"), False),
    ],
)
def test_the_harmless_fields_are_few(path: KeyPath, harmless: bool) -> None:
    """Labels and annotations without a prefix, the JobSet's own ttl, and requests of memory and CPU are harmless."""
    assert is_harmless(path) is harmless


@pytest.mark.parametrize(
    ("extra", "free"),
    [
        ({"tpu": {"nodeSpec": [{"node": {"networkConfig": {"network": "n"}}}]}}, True),
        ({"tpu": {"nodeSpec": [{"node": {"networkConfig": {"subnetwork": "s"}}}]}}, True),
        ({"tpu": {"nodeSpec": [{"node": {"labels": {"team": "x"}}}]}}, True),
        ({"spot": {}}, False),
        ({"reservationName": "r"}, False),
    ],
)
def test_a_field_that_the_plan_leaves_open_is_free(extra: dict[str, Any], free: bool) -> None:
    """A network can be set in `extra` instead; the capacity is decided even where the spec has none."""
    result = merged(*planned("cloud-tpu", "v2-8"), extra)
    assert (result.refusals == ()) == free


def test_a_setting_of_targets_that_is_set_is_not_free() -> None:
    """With a network in the spec, `extra` cannot name another one."""
    job_, body = planned("cloud-tpu", "v2-8", options={"network": "mine"})
    result = merged(
        job_, body, {"tpu": {"nodeSpec": [{"node": {"networkConfig": {"network": "n"}}}]}}
    )
    assert [refusal.keys for refusal in result.refusals] == [(("targets", "cloud-tpu", "network"),)]


def test_other_mistakes_are_found_beside_a_refused_field() -> None:
    """A refused field is left out, so a mistake elsewhere is its own finding, and none follows from the refusal."""
    extra = {
        "scheduling": {"maxWaitDuration": 5},
        "workerPoolSpecs": [{"machineSpec": {"acceleratorCount": 512}}],
    }
    findings = compiled("vertex-ai", "v2-8", options={"extra": extra}).findings
    assert [finding.id for finding in findings] == ["TPU072", "TPU066"]
    extra = {"workerPoolSpecs": [{}, {"machineSpec": {"machineType": "x"}, "replicaCount": "many"}]}
    findings = compiled("vertex-ai", "v2-8", options={"extra": extra}).findings
    assert [finding.id for finding in findings] == ["TPU068"]


def test_one_field_is_one_finding_for_all_environments() -> None:
    """The finding names the settings of all environments, at the line of `extra`."""
    environments = {
        name: {"project": f"my-{name}", "region": "us-central1"} for name in ("dev", "prod")
    }
    data = {"tpu": {"nodeSpec": [{"parent": "projects/other/locations/us-central1-b"}]}}
    result = compiled(
        "cloud-tpu", "v2-8", "v2-32", options={"extra": data}, environments=environments
    )
    (finding,) = [finding for finding in result.findings if finding.id == "TPU066"]
    assert "environments.dev.project and environments.prod.project" in finding.message
    assert result.project
    extra = ("targets", "cloud-tpu", "extra", "tpu", "nodeSpec", 0, "parent")
    assert finding.location == document(result.project.document.text).key_location(extra)


@pytest.mark.slow
@EVERY_JOB
def test_no_value_raises_an_exception(target: str, size: str, changes: dict[str, Any]) -> None:
    """A value of any type at any place of the message is merged or refused, and the target's values stay."""
    job_, body = planned(target, size, **changes)
    written = [leaf for leaf in leaves(body) if value_at(body, leaf) != {}]
    values: tuple[Any, ...] = (
        None,
        5,
        "x",
        [],
        {},
        [5],
        [[]],
        [{}],
        [{"key": [5]}],
        [{"name": [5]}],
        {"a": {}},
    )
    paths = {leaf[:end] for leaf in leaves(body) for end in range(1, len(leaf) + 1)}
    for path, value in product(paths, values):
        if isinstance(path[-1], str):
            result = merged(job_, body, extra_at(body, path, value))
            assert all(value_at(result.body, leaf) == value_at(body, leaf) for leaf in written), (
                path,
                value,
            )


@pytest.mark.parametrize(
    "name",
    [
        "TPU_VISIBLE_CHIPS",
        "TPU_VISIBLE_DEVICES",
        "TPU_CHIPS_PER_HOST_BOUNDS",
        "TPU_HOST_BOUNDS",
        "TPU_TOPOLOGY",
        "TPU_ACCELERATOR_TYPE",
        "TPU_PROCESS_BOUNDS",
        "TPU_WORKER_ID",
        "MEGASCALE_NUM_SLICES",
    ],
)
def test_a_variable_of_the_tpu_runtime_is_the_service_s(name: str) -> None:
    """Neither `extra` nor the trainer's variables or secrets can set it."""
    container = {"name": "trainer", "env": [{"name": name, "value": "1"}]}
    result = merged(*planned("gke", "v6e-16"), pod_extra(containers=[container]))
    assert [refusal.id for refusal in result.refusals] == ["TPU067"]
    for trainer in ({"env": {name: "1"}}, {"secrets": {name: "a/1"}}):
        (finding,) = compiled("gke", "v6e-16", trainer=trainer).findings
        assert (finding.id, name in finding.message) == ("TPU065", True)


@pytest.mark.parametrize(("name", "value"), [("TPU_MIN_LOG_LEVEL", "0"), ("JAX_PLATFORMS", "cpu")])
def test_a_variable_that_tunes_the_program_is_free(name: str, value: str) -> None:
    """The trainer's variables may contain those that do not describe machines."""
    assert compiled("gke", "v6e-16", trainer={"env": {name: value}}).findings == ()


def test_a_whole_list_or_mapping_is_refused_in_plain_words() -> None:
    """The settings of a whole list are of several kinds, so that the help is about the list."""
    result = compiled("gke", "v6e-16", options={"extra": pod_extra(containers=None)})
    (finding,) = [finding for finding in result.findings if finding.id == "TPU066"]
    assert finding.help == (
        "delete it here, and change the settings that decide it: trainer.image, trainer.args, training and 1 more"
    )


def test_a_finding_names_items_and_not_their_positions() -> None:
    """The trainer's container is first in the config, wherever `extra` has it."""
    side, own = {"name": "side", "image": "i"}, {"name": "trainer", "image": "x"}
    result = compiled("gke", "v6e-16", options={"extra": pod_extra(containers=[side, own])})
    (finding,) = [finding for finding in result.findings if finding.id == "TPU066"]
    assert "containers.trainer.image is decided by trainer.image" in finding.message


def test_a_path_may_name_an_item_by_its_key() -> None:
    """Comparisons address metadata by its keys; the source in `extra` is that of the item's position."""
    added = {"key": "ssh-keys", "value": "me"}
    extra = {"instance": {"metadata": {"items": [added]}}}
    job_ = job("compute-engine", "v6e-4", options={"extra": extra})
    body = merged_request_body(job_).body
    path = ("instance", "metadata", "items", "ssh-keys")
    assert path_with_indices(body, path) == ("instance", "metadata", "items", 1)
    source = ("targets", "compute-engine", "extra", *path[:-1], 0)
    assert extra_source(job_, path_with_indices(body, path)) == source
    assert path_with_indices(body, (*path[:-1], "other")) == (*path[:-1], "other")
    assert path_with_indices(body, ("instance", "disks", 0, "boot")) == (
        "instance",
        "disks",
        0,
        "boot",
    )
    assert path_with_indices(body, (*path[:-1], "startup-script", "value", "", 3))[3:] == (
        0,
        "value",
        "",
        3,
    )
    assert item_names([added, added]) == item_names([added, {}]) == []
