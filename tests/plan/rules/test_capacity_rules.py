"""Capacity: the verdict of the table on every size, and what a kind of capacity needs."""

from itertools import product
from typing import Any, get_args

import pytest

from spec_factory import CATALOG, WITHOUT, finding_with_id, ids, missing_words, planned, spec
from tpucfg.findings import Finding
from tpucfg.plan.rules.capacity_table import CAPACITY_TABLE, FLEX_START_ZONES, capacity_verdict
from tpucfg.spec.settings import CapacityKind
from tpucfg.targets import TARGETS

KINDS: tuple[CapacityKind, ...] = get_args(CapacityKind)
OF_CAPACITY = ("TPU054", "TPU055", "TPU056", "TPU057", "TPU058")


def capacity_findings(
    target: str, *sizes: str, region: str = "us-east5", **changes: Any
) -> list[Finding]:
    """Return the findings about capacity of a spec whose program writes checkpoints, unless `changes` alter it."""
    figures = {"training__tuned_on": sizes[0], "training__batch_size": 2**14}
    args = {"trainer__args": {"model_dir": "${job_dir}"}}
    data = spec(
        target=target,
        sizes=list(sizes),
        environments__dev__region=region,
        **{**figures, **args, **changes},
    )
    return [finding for finding in planned(data).findings if finding.id in OF_CAPACITY]


def level(target: str, size: str, kind: CapacityKind) -> str:
    """Return the verdict on a size."""
    slice_ = CATALOG.find(size)
    assert slice_ is not None
    return capacity_verdict(target, slice_, kind).level


def test_every_size_of_every_target_has_a_verdict() -> None:
    """The table decides about each kind of capacity of each size that a target supports, and cites a page."""
    for target, kind in product(TARGETS, KINDS):
        for slice_ in CATALOG.all():
            if target in slice_.targets:
                row = capacity_verdict(target, slice_, kind)
                assert row in CAPACITY_TABLE, (target, slice_.size, kind)
                assert all(url.startswith("https://") for url in row.sources)
                assert row.sources


def test_a_new_target_takes_on_demand_only() -> None:
    """A target without rows is not assumed to offer more."""
    assert [level("docker", "v3-8", kind) for kind in KINDS] == [
        "allowed",
        "error",
        "error",
        "error",
    ]


def test_no_row_is_hidden() -> None:
    """Each row decides about some size: none is behind one that matches more."""
    deciding = {
        capacity_verdict(target, slice_, kind)
        for target, kind in product(TARGETS, KINDS)
        for slice_ in CATALOG.all()
        if target in slice_.targets
    }
    assert [row for row in CAPACITY_TABLE if row not in deciding] == []


def test_on_demand_is_nearly_always_allowed() -> None:
    """The default capacity makes no finding, except for slices of several hosts on Compute Engine."""
    rows = [row for row in CAPACITY_TABLE if row.kind == "on-demand"]
    assert {row.target for row in rows if row.level == "allowed"} == {*TARGETS}
    others = [(row.target, row.level, row.hosts) for row in rows if row.level != "allowed"]
    assert others == [("compute-engine", "warning", "several")]


@pytest.mark.parametrize(
    ("target", "size", "levels"),
    [
        ("vertex-ai", "v3-8", ("allowed", "warning", "error", "allowed")),
        ("vertex-ai", "v3-32", ("allowed", "error", "error", "allowed")),
        ("vertex-ai", "v6e-8", ("allowed", "warning", "error", "allowed")),
        ("cloud-tpu", "v5litepod-256", ("allowed", "allowed", "error", "allowed")),
        ("cloud-tpu", "v6e-256x2", ("allowed", "allowed", "error", "allowed")),
        ("compute-engine", "v6e-8", ("allowed", "allowed", "allowed", "allowed")),
        ("compute-engine", "tpu7x-128", ("warning", "warning", "allowed", "allowed")),
        ("gke", "v3-8", ("allowed", "allowed", "error", "allowed")),
        ("gke", "v4-8", ("allowed", "allowed", "error", "allowed")),
        ("gke", "v5litepod-8", ("allowed", "allowed", "allowed", "allowed")),
        ("gke", "v6e-16", ("allowed", "allowed", "warning", "allowed")),
        ("gke", "v6e-16x2", ("allowed", "allowed", "warning", "allowed")),
        ("gke", "tpu7x-8", ("allowed", "allowed", "warning", "allowed")),
        ("ai-platform", "v2-8", ("allowed", "error", "error", "error")),
    ],
)
def test_verdicts(target: str, size: str, levels: tuple[str, ...]) -> None:
    """Verdicts on on-demand, spot, flex-start and a reservation, as Google's pages state them."""
    assert tuple(level(target, size, kind) for kind in KINDS) == levels


def test_refused_sizes_are_one_finding() -> None:
    """One layer is one mistake: its error lists the sizes, without a warning about the others."""
    (finding,) = capacity_findings(
        "vertex-ai", "v3-8", "v3-32", "v3-64", region="europe-west4", capacity="spot"
    )
    assert (finding.id, finding.level) == ("TPU055", "error")
    assert (
        missing_words(
            finding, "v3-32 and v3-64", "use-spot-vms", "spot: cloud-tpu, gke", "set capacity to"
        )
        == []
    )
    assert "v3-8" not in finding.message


def test_a_capacity_of_one_size_is_judged_for_that_size() -> None:
    """The layer of a size in an environment decides, and the finding is there."""
    overrides = {"v3-32": {"capacity": "spot"}}
    (finding,) = capacity_findings(
        "vertex-ai", "v3-8", "v3-32", region="europe-west4", environments__dev__overrides=overrides
    )
    assert (
        missing_words(finding, "set environments.dev.overrides.v3-32.capacity to on-demand") == []
    )


PLACE = {"project": "my-project-prod", "region": "europe-west4"}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"capacity": "spot"}, "environments.prod.capacity"),
        (
            {"environments__prod": {**PLACE, "target": "vertex-ai", "capacity": "spot"}},
            "environments.prod.capacity",
        ),
        (
            {"overrides": {"v3-32": {"capacity": "spot"}}},
            "environments.prod.overrides.v3-32.capacity",
        ),
        ({"capacity": "spot", "target": "vertex-ai"}, "capacity"),
        (
            {
                "capacity": "spot",
                "overrides": {"v3-32": {"capacity": {"reservation": "r"}}},
                "sizes": ["v3-32", "v3-64"],
            },
            "capacity",
        ),
    ],
)
def test_the_fix_leaves_other_environments_alone(changes: dict[str, Any], path: str) -> None:
    """Of two environments that share a layer, only the one whose service refuses is changed, if a layer can do so."""
    environments = {
        "dev": {**PLACE, "project": "my-project-dev"},
        "prod": {**PLACE, "target": "vertex-ai"},
    }
    sizes = {
        "sizes": ["v3-32"],
        "training__tuned_on": "v3-32",
        "trainer__args": {"d": "${job_dir}"},
    }
    data = spec(**{"target": "cloud-tpu", "environments": environments, **sizes, **changes})
    finding = finding_with_id("TPU055", planned(data).findings)
    assert finding.help == f"set {path} to on-demand"


def test_a_selected_target_is_judged() -> None:
    """`--target` replaces the target of the environment."""
    data = spec(
        capacity="spot",
        sizes=["v2-32"],
        training__tuned_on="v2-32",
        trainer__args={"d": "${job_dir}"},
    )
    assert "TPU055" in ids(planned(data).findings)
    assert "TPU055" not in ids(planned(data, target="cloud-tpu").findings)


@pytest.mark.parametrize(
    ("duration", "fix"),
    [
        (None, "set trainer.max_run_duration to 12h"),
        ("599s", "set trainer.max_run_duration to 10m"),
        ("8d", "set trainer.max_run_duration to 7d"),
        ("600s", None),
        ("10m", None),
        ("7d", None),
        ("168h", None),
    ],
)
def test_flex_start_needs_a_duration(duration: str | None, fix: str | None) -> None:
    """From 10 minutes to 7 days, both included."""
    limit = {"trainer__max_run_duration": duration} if duration else {}
    findings = capacity_findings("gke", "v6e-4", capacity="flex-start", **limit)
    assert [(finding.id, finding.help) for finding in findings] == (
        [("TPU057", fix)] if fix else []
    )


def test_the_duration_is_asked_for_in_the_layer_of_the_capacity() -> None:
    """A duration for the flex-start of one environment limits no run of another."""
    (finding,) = capacity_findings("gke", "v6e-4", environments__dev__capacity="flex-start")
    assert finding.help == "set environments.dev.trainer.max_run_duration to 12h"


@pytest.mark.parametrize(
    ("generation", "size"), [("v5e", "v5litepod-4"), ("v5p", "v5p-8"), ("v6e", "v6e-4")]
)
def test_flex_start_is_listed_by_zone(generation: str, size: str) -> None:
    """A region without a zone of GKE's list is a warning, and so is another zone of a region with one."""
    limit = {"trainer__max_run_duration": "12h", "capacity": "flex-start"}
    zone = FLEX_START_ZONES[generation][0]
    region = zone.rpartition("-")[0]
    assert capacity_findings("gke", size, region=region, **limit) == []
    (finding,) = capacity_findings("gke", size, region="europe-west4", **limit)
    assert missing_words(finding, size, "europe-west4", zone) == []
    other = {"environments__dev__zones": {size: f"{region}-x"}}
    assert [
        finding.id for finding in capacity_findings("gke", size, region=region, **limit, **other)
    ] == ["TPU056"]


@pytest.mark.parametrize(
    "changes",
    [
        {"trainer__args": {"output": "${job_dir}/x"}},
        {"trainer__args": {"checkpoint_path": "/x"}},
        {"trainer__args": {"ckpt-every": 5}},
        {"trainer__env": {"CHECKPOINT_DIR": "/x"}},
        {"trainer__env": {"OUT": "${job_dir}"}},
        {"trainer__mounts": {"/out": "${job_dir}"}},
        {"training__steps": {"save_checkpoints_steps": 500}},
    ],
)
def test_a_program_that_writes_checkpoints_may_run_on_spot(changes: dict[str, Any]) -> None:
    """A name with a word for checkpoints, or the job's own folder anywhere, shows it."""
    without_args = {"trainer__args": WITHOUT, **changes}
    assert capacity_findings("cloud-tpu", "v6e-16", capacity="spot", **without_args) == []


@pytest.mark.parametrize(
    "args", [{}, {"data_dir": "${bucket}/data"}, {"savings": 1}, {"unsaved": "x"}]
)
def test_spot_without_checkpoints_is_a_warning(args: dict[str, Any]) -> None:
    """Another folder shows nothing, nor does a word that only contains one of checkpoints."""
    (finding,) = capacity_findings(
        "cloud-tpu", "v6e-16", "v6e-32", capacity="spot", trainer__args=args
    )
    assert (finding.id, finding.level) == ("TPU058", "warning")
    assert missing_words(finding, "v6e-16 and v6e-32") == []


def test_on_demand_needs_no_checkpoints() -> None:
    """Only spot machines are preempted."""
    assert capacity_findings("cloud-tpu", "v6e-16", trainer__args={}) == []


@pytest.mark.parametrize(
    "capacity",
    ["spot", "on-demand", {"reservation": "r"}],
    ids=["spot", "on-demand", "reservation"],
)
def test_a_compute_class_excludes_a_capacity(capacity: Any) -> None:
    """Any capacity beside a class is one error, with both lines; a class alone is none."""
    settings: dict[str, Any] = {"targets__gke": {"compute_class": "tpu"}}
    assert capacity_findings("gke", "v6e-16", **settings, trainer__args={}) == []
    (finding,) = capacity_findings("gke", "v6e-16", capacity=capacity, **settings, trainer__args={})
    assert finding.id == "TPU054"
    assert [label for _, label in finding.related] == ["the capacity"]


def test_a_class_of_another_target_excludes_nothing() -> None:
    """The settings of gke have no effect on cloud-tpu."""
    settings: dict[str, Any] = {"targets__gke": {"compute_class": "tpu"}}
    assert capacity_findings("cloud-tpu", "v6e-16", capacity="spot", **settings) == []


def test_a_reservation_on_vertex_ai_needs_a_zone() -> None:
    """Its full name has the zone; without one the config could not be written, so the zone is asked for."""
    changes: dict[str, Any] = {
        "sizes": ["v3-8"],
        "training__tuned_on": "v3-8",
        "environments__dev__region": "us-west9",
        "environments__dev__capacity": {"reservation": "r"},
        "allow": {"TPU021": "offered"},
    }
    finding = finding_with_id("TPU005", planned(spec(**changes)).findings)
    assert missing_words(finding, "add environments.dev.zones.v3-8", "use-reservations") == []
    changes["environments__dev__zones"] = {"v3-8": "us-west9-a"}
    assert "TPU005" not in ids(planned(spec(**changes)).findings)
