"""Settings that a spec brings along to another target."""

import json
from typing import Any

import pytest

from autofix import apply_help
from spec_factory import ROOT, compiled, spec
from tpucfg.catalog import TARGET_FACTS
from tpucfg.yamldoc.reader import read_text

SCHEMA: dict[str, Any] = json.loads(
    (ROOT / "schema/tpucfg.schema.json").read_text(encoding="utf-8")
)["$defs"]
SETTINGS: dict[str, Any] = {
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "network": "train",
    "subnetwork": "train-east",
    "external_ips": False,
    "tags": ["train"],
    "data_disks": [
        {"source": "projects/my-project/zones/us-east5-a/disks/data", "read_only": True}
    ],
}
"""Every setting that both targets have."""


def form(setting: Any) -> Any:
    """Return the schema of a setting without the texts for its readers."""
    texts = ("title", "description", "examples")
    if isinstance(setting, dict):
        return {key: form(value) for key, value in setting.items() if key not in texts}
    return setting


def test_each_setting_has_the_same_form() -> None:
    """A setting of hosts is valid below the name of another target; the fields of `extra` are those of a service."""
    movable = {*TARGET_FACTS["cloud-tpu"].host_settings} - {"extra"}
    assert movable == SETTINGS.keys()
    for key in movable:
        assert form(SCHEMA["cloud-tpu"]["properties"][key]) == form(
            SCHEMA["compute-engine"]["properties"][key]
        ), key


def spec_text(target: str, size: str, targets: dict[str, Any]) -> str:
    """Return a spec with settings of targets."""
    environment = {"project": "my-project", "region": "us-east5"}
    spec = {
        "version": 1,
        "name": "mnist",
        "target": target,
        "sizes": [size],
        "environments": {"dev": environment},
        "capacity": {"reservation": "mine"},
        "trainer": {"image": "us-docker.pkg.dev/my-project/train/mnist:1.0"},
        "training": {"tuned_on": size, "batch_size": 1024, "train_steps": 1000},
        "targets": targets,
        "allow": {"TPU064": "the subnetwork has a Cloud NAT"},
    }
    return json.dumps(spec, indent=2)


@pytest.mark.parametrize("size", ["v6e-4", "v6e-16"])
def test_a_spec_moves_by_its_target_and_the_help(size: str) -> None:
    """With another target, the edit of the help is all that a spec with every setting needs."""
    settings = SETTINGS | {"runtime_version": "v2-alpha-tpuv6e"}
    document = read_text(spec_text("compute-engine", size, {"cloud-tpu": settings}), "tpucfg.yaml")
    (finding,) = [each for each in compiled(document.data).findings if each.id == "TPU061"]
    assert finding.help.startswith(
        "move external_ips, network, subnetwork, tags, service_account and data_disks to "
    )
    text = apply_help(document, finding)
    assert text is not None
    result = compiled(read_text(text, "tpucfg.yaml").data)
    assert {each.level for each in result.findings} <= {"note"}, result.findings
    ((_, body),) = result.request_bodies
    host = body["instance"] if size == "v6e-4" else body["instanceTemplate"]["properties"]
    assert host["tags"] == {"items": ["train"]}
    assert [disk["mode"] for disk in host["disks"][1:]] == ["READ_ONLY"]


@pytest.mark.parametrize(
    ("old", "new", "edit"),
    [
        (
            {"tags": ["a"], "extra": {"queueingPolicy": {}}},
            None,
            "move tags to targets.compute-engine, and delete",
        ),
        ({"tags": ["a"]}, {"tags": ["b"]}, "delete targets.cloud-tpu"),
        (
            {"tags": ["a"], "network": "n"},
            {"tags": ["b"]},
            "move network to targets.compute-engine, and delete",
        ),
        ({"runtime_version": "v2"}, None, "delete targets.cloud-tpu"),
    ],
)
def test_nothing_is_lost_and_nothing_is_replaced(
    old: dict[str, Any], new: dict[str, Any] | None, edit: str
) -> None:
    """A setting of the new target stays, and only settings that it has are moved."""
    targets = {"cloud-tpu": old} | ({"compute-engine": new} if new else {})
    document = read_text(spec_text("compute-engine", "v6e-4", targets), "tpucfg.yaml")
    (finding,) = [each for each in compiled(document.data).findings if each.id == "TPU061"]
    assert edit in finding.help


def test_a_module_has_an_effect_in_an_environment_called_overrides() -> None:
    """An environment of this name is a layer of all its sizes, and not that of one size."""
    environment = {
        "project": "my-project-dev",
        "region": "us-central1",
        "trainer": {"module": "trainer.other"},
    }
    trainer = {
        "image": "us-docker.pkg.dev/p/r/executor:1",
        "package": "gs://my-bucket/trainer.tar.gz",
        "module": "trainer.task",
    }
    assert compiled(spec(environments={"overrides": environment}, trainer=trainer)).findings == ()
