"""A warning for hosts that a change of target would open, and silence for a spec that decides for both targets."""

from typing import Any, Final

import pytest

from spec_factory import finding_with_id, ids, planned, spec

_DEV: Final = {"project": "my-project-dev", "region": "us-east5"}
_PROD: Final = {"project": "my-project-prod", "region": "us-east5", "target": "compute-engine"}
_CLOSED: Final = {"external_ips": False, "network": "train"}


def both(*, prod: dict[str, Any] | None = None, **targets: Any) -> dict[str, Any]:
    """Return a spec whose dev is on cloud-tpu and whose prod is on compute-engine."""
    return spec(
        target="cloud-tpu",
        sizes=["v6e-4", "v6e-8"],
        training__tuned_on="v6e-4",
        environments={"dev": {**_DEV}, "prod": _PROD | (prod or {})},
        targets={name.replace("_", "-"): settings for name, settings in targets.items()},
    )


def count(data: dict[str, Any], **selection: Any) -> int:
    """Return the number of the rule's findings."""
    return ids(planned(data, **selection).findings).count("TPU120")


def test_the_environment_that_moved_is_named() -> None:
    """The location is that of the setting, and the help is the whole edit; dev keeps its network."""
    finding = finding_with_id("TPU120", planned(both(cloud_tpu=_CLOSED)).findings)
    assert finding.message == (
        "targets.cloud-tpu has external_ips and network, which compute-engine does not read: in prod, hosts get "
        "addresses on the internet and are in the network default"
    )
    assert finding.help == "set targets.compute-engine to {external_ips: false, network: train}"
    assert count(both(cloud_tpu=_CLOSED), environments=("dev",)) == 0


@pytest.mark.parametrize(
    "own",
    [
        _CLOSED,
        {"external_ips": True, "network": "default"},
        {"external_ips": None, "network": None},
        {"external_ips": False, "subnetwork": "train-us-east5"},
    ],
)
def test_a_setting_of_the_own_target_is_a_decision(own: dict[str, Any]) -> None:
    """An explicit value, null, or a subnetwork, which is in one network, ends the warning, in any layer."""
    assert count(both(cloud_tpu=_CLOSED, compute_engine=own)) == 0
    assert count(both(cloud_tpu=_CLOSED, prod={"targets": {"compute-engine": own}})) == 0
    layer = {"v6e-4": {"targets": {"compute-engine": own}}}
    assert count(both(cloud_tpu=_CLOSED, prod={"overrides": layer})) == 1  # v6e-8 lacks it


@pytest.mark.parametrize(
    "other",
    [
        {"external_ips": True, "network": "default", "tags": []},
        {"runtime_version": "tpu-ubuntu2204-base"},
        {"extra": {}, "data_disks": []},
        {"network": None},
    ],
)
def test_settings_that_limit_nothing_are_silent(other: dict[str, Any]) -> None:
    """Only limits of hosts count, and only if they differ from what every target has."""
    assert count(both(cloud_tpu=other)) == 0


def test_a_target_on_the_command_line_is_compared_too() -> None:
    """`--target` opens hosts as a change of the spec does; a target without such settings has nothing to compare."""
    data = both(cloud_tpu=_CLOSED, prod={"target": "cloud-tpu"})
    assert count(data) == 0
    assert count(data, target="compute-engine") == 1
    assert count(data, target="gke") == 0


def test_a_section_that_no_environment_reads_opens_hosts_too() -> None:
    """TPU061 about the section may be allowed; the hosts are open all the same, in each environment."""
    data = both(cloud_tpu=_CLOSED)
    data["environments"]["dev"]["target"] = "compute-engine"
    finding = finding_with_id("TPU120", planned(data).findings)
    assert "in dev and prod, hosts get addresses on the internet" in finding.message
    layered = both(prod={"targets": {"cloud-tpu": _CLOSED}})
    finding = finding_with_id("TPU120", planned(layered).findings)
    assert finding.help == ("set environments.prod.targets.compute-engine to {external_ips: false, network: train}")


def test_disks_and_extra_fields_are_lost_with_their_target() -> None:
    """The edit has the disks as they are; the fields of `extra` are others, and `null` does without them."""
    disk = {"source": "projects/my-project-prod/zones/us-east5-a/disks/data", "read_only": False}
    lost = {"data_disks": [disk], "extra": {"queueingPolicy": {"validUntilDuration": "60s"}}}
    finding = finding_with_id("TPU120", planned(both(cloud_tpu=lost, compute_engine={"disk_gb": 300})).findings)
    assert finding.message.endswith("in prod, hosts have no data disks and lack what extra adds")
    assert finding.help == (
        f"add data_disks: [{{source: {disk['source']}, read_only: false}}] to targets.compute-engine, and set "
        "targets.compute-engine.extra to the same fields of its own objects, or to null"
    )
    assert count(both(cloud_tpu=lost, compute_engine={"data_disks": [disk], "extra": None})) == 0


def test_the_edit_has_a_long_value_in_full() -> None:
    """An edit with an ellipsis would not work."""
    path = f"projects/{'p' * 30}/regions/us-east5/subnetworks/{'s' * 50}"
    finding = finding_with_id("TPU120", planned(both(cloud_tpu={"subnetwork": path})).findings)
    assert path in str(finding.help)


def test_an_account_and_a_network_of_a_layer_are_one_finding_for_each_place() -> None:
    """The edit belongs to the layer that has the limit."""
    account = {"service_account": "trainer@my-project-prod.iam.gserviceaccount.com"}
    data = both(cloud_tpu=account)
    data["overrides"] = {"v6e-8": {"targets": {"cloud-tpu": {"network": "train"}}}}
    findings = [finding for finding in planned(data).findings if finding.id == "TPU120"]
    assert {finding.help for finding in findings} == {
        "set overrides.v6e-8.targets.compute-engine to {network: train}",
        "set targets.compute-engine to {service_account: trainer@my-project-prod.iam.gserviceaccount.com}",
    }
