"""Sentences about layered settings: each once for all configs concerned, with its layer and its danger."""

from typing import Any, Final

import pytest

from spec_changes import impact, statements
from spec_factory import spec
from tpucfg.changes.facts import Risk

_DEV: Final = {"project": "my-project-dev", "region": "us-east5", "kube_context": "c"}
_PROD: Final = {**_DEV, "project": "my-project-prod"}
_SIZES: Final[dict[str, Any]] = {"sizes": ["v6e-8", "v6e-16"], "training__tuned_on": "v6e-8"}
_DISK: Final = "projects/my-project-dev/zones/us-east5-b/disks/data"
_GRANTED: Final = "the program gets its value, and the stack grants the jobs' account access to it"


def gke(*, dev: Any = None, prod: Any = None, **changes: Any) -> dict[str, Any]:
    """Return a spec with two environments on GKE, each with further keys."""
    environments = {"dev": {**_DEV, **(dev or {})}, "prod": {**_PROD, **(prod or {})}}
    return spec(**_SIZES, target="gke", environments=environments, **changes)


def cloud_tpu(**options: Any) -> dict[str, Any]:
    """Return a spec for cloud-tpu with options of it."""
    return spec(
        **_SIZES, target="cloud-tpu", environments={"dev": _DEV}, targets={"cloud-tpu": options}
    )


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (
            gke(capacity="spot"),
            "every config: capacity changed from the node pool decides to spot: machines have another price",
        ),
        (
            gke(dev={"capacity": {"reservation": "chat-2026"}}),
            "every size of dev: capacity changed from the node pool decides to reservation chat-2026",
        ),
        (
            gke(overrides={"v6e-16": {"trainer": {"restarts": 3}}}),
            "dev, prod: v6e-16: restarts added (3) in overrides.v6e-16: a run ends after more failures",
        ),
        (
            gke(prod={"overrides": {"v6e-8": {"targets": {"gke": {"priority": "high"}}}}}),
            "prod: v6e-8: setting priority added (high) in environments.prod.overrides.v6e-8: it decides which pods",
        ),
        (gke(trainer__max_run_duration="12h"), "every config: maximum run duration added (12h)"),
        (
            gke(trainer__mounts={"/data": "${bucket}/data"}),
            "every config: mount /data added (${bucket}/data)",
        ),
        (
            gke(trainer__xla_flags={"v6e": ["--xla_a=true", "--xla_b"], "v5e": ["--xla_c=1"]}),
            "every config: XLA flags --xla_a added (true), --xla_b added",
        ),
    ],
)
def test_a_setting_is_one_sentence_with_its_layer(after: dict[str, Any], sentence: str) -> None:
    """Configs that share a change share its sentence, and no field that follows from it has another."""
    (reported,) = statements(gke(), after)
    assert reported.startswith(sentence)


def test_access_to_a_secret_is_granted_by_name() -> None:
    """A new secret, or another one, is access; another version is none, and `latest` is a caution."""
    held = gke(trainer__secrets={"HF_TOKEN": "hf/1"})
    shared = gke(trainer__secrets={"HF_TOKEN": "projects/shared/secrets/hf/versions/1"})

    assert statements(gke(), held) == [f"every config: secret HF_TOKEN added (hf/1): {_GRANTED}"]
    assert impact(gke(), held).statements[0].statement.risk is Risk.ACCESS
    assert statements(held, shared) == [
        "every config: secret HF_TOKEN changed from hf/1 to projects/shared/secrets/hf/versions/1: "
        + _GRANTED
    ]
    assert statements(held, gke(trainer__secrets={"HF_TOKEN": "hf/2"})) == [
        "every config: secret HF_TOKEN changed from hf/1 to hf/2"
    ]
    assert statements(held, gke(trainer__secrets={"HF_TOKEN": "hf"})) == [
        "every config: secret HF_TOKEN changed from hf/1 to hf/latest: its value can change between two runs"
    ]
    assert statements(held, gke()) == ["every config: secret HF_TOKEN removed (was hf/1)"]


def test_a_secret_of_a_new_rung_is_access() -> None:
    """A rung that is added with a secret has the caution; one with the secrets of the other rungs has none."""
    sizes = ["v6e-8", "v6e-16", "v6e-32"]
    layer = {"v6e-32": {"trainer": {"secrets": {"HF_TOKEN": "hf/1"}}}}

    added = statements(gke(), {**gke(overrides=layer), "sizes": sizes})
    assert added[0] == f"dev, prod: v6e-32: secret HF_TOKEN hf/1, unlike v6e-16 without: {_GRANTED}"
    held = gke(trainer__secrets={"HF_TOKEN": "hf/1"})
    assert not any("secret" in line for line in statements(held, {**held, "sizes": sizes}))


@pytest.mark.parametrize(
    ("before", "after", "caution"),
    [
        (
            gke(capacity="spot"),
            gke(),
            "capacity changed from spot to the node pool decides: machines have another price",
        ),
        (
            gke(trainer__max_run_duration="12h"),
            gke(trainer__max_run_duration="2d"),
            "duration changed from 12h to 2d: a run that hangs ends later, and can cost 4× as much",
        ),
        (
            gke(trainer__max_run_duration="12h"),
            gke(),
            "duration removed (was 12h): nothing else ends a run that hangs",
        ),
        (
            gke(trainer__restarts=3),
            gke(trainer__restarts=1),
            "restarts changed from 3 to 1: a run ends after fewer failures",
        ),
        (gke(), gke(trainer__restarts=0), "restarts added (0): a run ends after fewer failures"),
        (
            gke(),
            gke(trainer__mounts={"/o": "gs://other/x"}),
            "gs://other is not the environment's bucket",
        ),
        (
            gke(trainer__mounts={"/o": "${bucket}"}),
            gke(),
            "what the program writes there stays on the machine",
        ),
        (
            gke(targets={"gke": {"queue": "q"}}),
            gke(),
            "setting queue removed (was q): other quotas apply, or none",
        ),
        (
            gke(),
            gke(targets={"gke": {"image_pull_secrets": ["reg"]}}),
            "setting image_pull_secrets.reg added: images come",
        ),
        (
            cloud_tpu(),
            cloud_tpu(subnetwork="train"),
            "setting subnetwork added (train): the job runs in another network",
        ),
        (
            cloud_tpu(),
            cloud_tpu(tags=["a"]),
            "setting tags.a added: other firewall rules apply to the hosts",
        ),
        (cloud_tpu(external_ips=False), cloud_tpu(), "hosts get addresses on the internet"),
        (
            cloud_tpu(data_disks=[{"source": _DISK}]),
            cloud_tpu(data_disks=[{"source": _DISK, "read_only": False}]),
            f"setting data_disks.{_DISK} changed from read-only to read-write: the program reads and changes",
        ),
    ],
)
def test_what_makes_something_worse_is_a_caution(
    before: dict[str, Any], after: dict[str, Any], caution: str
) -> None:
    """Costs, limits, networks, data and access that get worse have a sentence with the consequence."""
    cautions = [
        located.plain for located in impact(before, after).statements if located.statement.risk
    ]
    assert any(caution in text for text in cautions), cautions


_CLOSED: Final[dict[str, Any]] = {
    "external_ips": False,
    "network": "train",
    "subnetwork": "train-us-east5",
    "service_account": "trainer@my-project-dev.iam.gserviceaccount.com",
}


def moved(target: str, **targets: Any) -> dict[str, Any]:
    """Return the spec of a closed network on cloud-tpu, moved to another target with settings of its own."""
    return {**cloud_tpu(**_CLOSED), "target": target, "targets": {"cloud-tpu": _CLOSED, **targets}}


def test_a_target_that_does_not_read_a_closed_network_opens_the_hosts() -> None:
    """Jobs are compared by what they get: the settings of the old target, which stay in the spec, no longer count."""
    reported = impact(cloud_tpu(**_CLOSED), moved("compute-engine")).statements
    account = "the settings of the new target name none, so jobs run as the stack's own"
    assert [(located.plain.partition(": ")[2], located.statement.risk) for located in reported] == [
        (
            "setting external_ips changed from false to true: hosts get addresses on the internet",
            Risk.ACCESS,
        ),
        ("setting network removed (was train): the job runs in another network", Risk.CAUTION),
        (
            f"setting service_account removed (was {_CLOSED['service_account']}): {account}",
            Risk.CAUTION,
        ),
        (
            "setting subnetwork removed (was train-us-east5): the job runs in another network",
            Risk.CAUTION,
        ),
        ("setting target changed from cloud-tpu to compute-engine", Risk.NONE),
    ]


def test_a_target_with_the_same_limits_opens_nothing() -> None:
    """Settings that come along are no change; network tags and disks that do not are one."""
    along = moved("compute-engine", **{"compute-engine": _CLOSED})
    assert statements(cloud_tpu(**_CLOSED), along) == [
        "dev: setting target changed from cloud-tpu to compute-engine",
    ]
    (lost, *_) = statements(cloud_tpu(**_CLOSED, tags=["closed"]), along)
    assert (
        lost == "every config: setting tags.closed removed: other firewall rules apply to the hosts"
    )


def test_a_service_that_has_no_such_setting_decides_about_addresses() -> None:
    """A cluster has its own network and its own rule about addresses; a host's default needs no sentence."""
    cautions = statements(cloud_tpu(**_CLOSED), moved("vertex-ai"))
    decides = "setting external_ips removed (was false): the service decides if hosts have addresses on the internet"
    assert f"every config: {decides}" in cautions
    assert not any("address" in line for line in statements(cloud_tpu(), moved("vertex-ai")))
    assert not any("address" in line for line in statements(moved("vertex-ai"), cloud_tpu()))


def test_image_that_a_script_started_is_not_new() -> None:
    """On some targets the image is a field and on others a word in a script; another one is a change on each."""
    there = moved("vertex-ai")
    assert not any(
        "image" in line
        for line in [*statements(cloud_tpu(), there), *statements(there, cloud_tpu())]
    )
    other = {**there, "trainer": {**there["trainer"], "image": "evil.example/x:1"}}
    assert any(
        "to evil.example/x:1: code comes from evil.example" in line
        for line in statements(cloud_tpu(), other)
    )


def test_addresses_are_named_by_what_hosts_get() -> None:
    """Hosts have external addresses unless the spec turns them off, so nothing is added by turning them off."""
    assert statements(cloud_tpu(), cloud_tpu(external_ips=False)) == [
        "every config: setting external_ips changed from true to false"
    ]
    assert statements(cloud_tpu(), cloud_tpu(external_ips=True)) == []
    (unset,) = impact(cloud_tpu(), cloud_tpu(network="default")).statements
    assert unset.statement.risk is Risk.NONE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (gke(), gke(trainer__max_run_duration="12h")),
        (gke(trainer__max_run_duration="2d"), gke(trainer__max_run_duration="12h")),
        (gke(), gke(capacity={"reservation": "chat-2026"})),
        (cloud_tpu(), cloud_tpu(external_ips=False)),
    ],
)
def test_what_makes_nothing_worse_is_no_caution(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """A limit, a reservation, or a host without an address has a sentence without a risk."""
    assert [located.statement.risk for located in impact(before, after).statements] == [Risk.NONE]


def test_a_value_that_only_moves_between_layers_is_no_change() -> None:
    """The values of jobs count, and not the layer that they are written in."""
    in_environments = gke(dev={"capacity": "spot"}, prod={"capacity": "spot"})
    assert statements(gke(capacity="spot"), in_environments) == []


def test_a_new_environment_has_no_cautions_for_what_the_others_have() -> None:
    """A setting of the spec's top is no news there; another value is."""
    options = {"gke": {"namespace": "training"}}
    both = gke(targets=options, trainer__command=["python3", "a.py"], trainer__env={"ENV": "a"})
    base = {**both, "environments": {"dev": _DEV}}

    def cautions(added: dict[str, Any]) -> list[str]:
        located = impact(
            base, {**base, "environments": {**base["environments"], "prod": added}}
        ).statements
        return [each.plain for each in located if each.statement.risk]

    assert cautions(_PROD) == []
    (other,) = cautions({**_PROD, "targets": {"gke": {"namespace": "other"}}})
    assert (
        "setting namespace added (other) in environments.prod: other accounts, quotas and policies"
        in other
    )
