"""The help for an unknown key of a spec is an edit that works: applied, it leaves no error."""

from copy import deepcopy
from typing import Any

import pytest
import yaml

from autofix import apply_help
from spec_factory import CATALOG, document, finding_with_id, spec
from tpucfg.findings import Finding, errors
from tpucfg.paths import value_at
from tpucfg.render.pipeline import compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_text

GKE: dict[str, Any] = {
    "target": "gke",
    "sizes": ["v5litepod-16", "v5litepod-64"],
    "environments": {"dev": {"project": "my-project-dev", "region": "us-west4"}},
    "training": {"tuned_on": "v5litepod-16", "batch_size": 1024, "train_steps": 4000},
}
SIZE = "v5litepod-16"
TRAINER = "under trainer"
DEV = "under environments.dev"
ZONE = "us-west4-a"
ZONES = f"delete zone, and set environments.dev.zones.{SIZE} to {ZONE}"
TOPOLOGY = f"topology belongs under overrides.{SIZE}: move it there, or delete it"
SHARED = "reservation: projects/my-project/reservations/chat"


def findings_of(text: Document) -> tuple[Finding, ...]:
    """Return all findings about a spec."""
    project, findings = parse_project(text)
    if project is None or project.broken:
        return findings
    return compile_project(project, CATALOG, earlier_findings=findings).findings


CASES: list[tuple[str, Any, str]] = [
    # Former keys of targets.
    ("targets__gke", {"spot": True}, "replace it by capacity: spot at the top of the file"),
    ("targets__gke", {"spot": False}, "delete spot"),
    (
        "targets__gke",
        {"reservation": "chat"},
        "replace it by capacity: {reservation: chat} at the top of the file",
    ),
    (
        "targets__vertex-ai",
        {"timeout": "86400s"},
        f'replace it by max_run_duration: "86400s" {TRAINER}',
    ),
    (
        "targets__vertex-ai",
        {"strategy": "SPOT"},
        "replace it by capacity: spot at the top of the file",
    ),
    (
        "targets__vertex-ai",
        {"strategy": "STANDARD"},
        "replace it by capacity: on-demand at the top of the file",
    ),
    ("environments__dev__targets", {"gke": {"spot": True}}, f"replace it by capacity: spot {DEV}"),
    (
        "overrides",
        {SIZE: {"targets": {"gke": {"spot": True}}}},
        f"replace it by capacity: spot under overrides.{SIZE}",
    ),
    # Words of capacity in other places.
    ("spot", True, "replace it by capacity: spot at the top of the file"),
    ("environments__dev__preemptible", True, f"replace it by capacity: spot {DEV}"),
    ("overrides", {SIZE: {"spot": True}}, f"replace it by capacity: spot under overrides.{SIZE}"),
    ("capacity", {"spot": True}, "set capacity to spot"),
    (
        "trainer__capacity",
        "spot",
        "capacity belongs at the top of the file: move it there, or delete it",
    ),
    (
        "environments__dev__trainer",
        {"capacity": "spot"},
        f"capacity belongs {DEV}: move it there, or delete it",
    ),
    # Settings of the program, outside of the trainer of their layer.
    ("env", {"A": "1"}, f"env belongs {TRAINER}: move it there, or delete it"),
    (
        "environments__dev__env",
        {"A": "1"},
        f"env belongs {DEV}.trainer: move it there, or delete it",
    ),
    (
        "environments__dev__args",
        {"a": 1},
        f"args belongs {DEV}.trainer: move it there, or delete it",
    ),
    (
        "overrides",
        {SIZE: {"env": {"A": "1"}}},
        f"env belongs under overrides.{SIZE}.trainer: move it there, or delete it",
    ),
    (
        "overrides",
        {SIZE: {"restarts": 3}},
        f"restarts belongs under overrides.{SIZE}.trainer: move it there, or delete it",
    ),
    (
        "environments__dev__overrides",
        {SIZE: {"args": {"a": 1}}},
        f"args belongs {DEV}.overrides.{SIZE}.trainer: move it there, or delete it",
    ),
    ("targets__gke", {"env": {"A": "1"}}, f"env belongs {TRAINER}: move it there, or delete it"),
    ("trainer__timeout", 3600, f'replace it by max_run_duration: "3600s" {TRAINER}'),
    # Settings of a target.
    ("queue", "q", "queue belongs under targets.gke: move it there, or delete it"),
    (
        "environments__dev__gke",
        {"queue": "q"},
        f"gke belongs {DEV}.targets: move it there, or delete it",
    ),
    (
        "overrides",
        {SIZE: {"queue": "q"}},
        f"queue belongs under overrides.{SIZE}.targets.gke: move it there, or delete it",
    ),
    ("targets__gke", {"network": "n"}, "delete network"),
    # Figures, and what exists already.
    (
        "environments__dev__batch_size",
        8,
        "delete environments.dev.batch_size: training.batch_size is already set",
    ),
    (
        "environments__dev__training",
        {},
        "delete environments.dev.training: training is already set",
    ),
    ("image", "x", "delete image: trainer.image is already set"),
    (
        "environments__dev__overrides",
        {SIZE: {"grad_accum": 2}},
        f"grad_accum belongs under overrides.{SIZE}: move it there, or delete it",
    ),
    # Names of other tools.
    (
        "training__tokens",
        10**9,
        "delete tokens: training.train_steps is already set, and excludes train_tokens, which has this meaning",
    ),
    (
        "training__micro_batch",
        4,
        "delete micro_batch: the micro-batch follows from batch_size, grad_accum and model_parallel",
    ),
    ("training__gradient_accumulation_steps", 2, "did you mean grad_accum?"),
    (
        "training__global_batch_size",
        8,
        "delete global_batch_size: training.batch_size is already set",
    ),
    ("trainer__max_retries", 3, "did you mean restarts?"),
    ("training__lr_rule", "linear", "did you mean learning_rate_rule?"),
    (
        "training__data_parallel",
        3,
        "delete data_parallel: data parallelism follows from the size and model_parallel",
    ),
    ("prices", {"v5e": {"reserved": 2}}, "did you mean reservation?"),
    ("prices", {"v5e": {"dws": 2}}, "did you mean flex-start?"),
    ("targets__cloud-tpu", {"version": "v2-alpha"}, "did you mean runtime_version?"),
    ("targets", {"agent-platform": {"service_account": "a@b.com"}}, "did you mean vertex-ai?"),
    # Keys with the opposite meaning of another.
    (
        "targets__cloud-tpu",
        {"internal_ips": True},
        "replace it by external_ips: false under targets.cloud-tpu",
    ),
    (
        "targets__cloud-tpu",
        {"internal_ips": False},
        "replace it by external_ips: true under targets.cloud-tpu",
    ),
    (
        "targets__cloud-tpu",
        {"internal_ips": True, "external_ips": False},
        "delete internal_ips: targets.cloud-tpu.external_ips is already set",
    ),
    # Settings counted in steps.
    (
        "training__warmup_steps",
        200,
        "warmup_steps belongs under training.steps: move it there, or delete it",
    ),
    ("save_steps", 200, "save_steps belongs under training.steps: move it there, or delete it"),
    ("training__max_steps", 200, "delete max_steps: training.train_steps is already set"),
    (
        "overrides",
        {SIZE: {"steps": {}}},
        f"move the keys of overrides.{SIZE}.steps to overrides.{SIZE} itself",
    ),
    # Settings of an environment.
    (
        "targets__gke",
        {"kube_context": "c"},
        f"kube_context belongs {DEV}: move it there, or delete it",
    ),
    ("targets__gke", {"labels": {"a": "b"}}, f"labels belongs {DEV}: move it there, or delete it"),
    (
        "overrides",
        {SIZE: {"labels": {"a": "b"}}},
        f"labels belongs {DEV}: move it there, or delete it",
    ),
    (
        "targets__gke",
        {"region": "us-west4"},
        "delete targets.gke.region: environments.dev.region is already set",
    ),
    ("overrides", {SIZE: {"zone": ZONE}}, ZONES),
    (
        "targets__cloud-tpu",
        {"zone": ZONE},
        f"delete zone, and set environments.dev.zones.<size> to {ZONE}",
    ),
    ("environments__dev__overrides", {SIZE: {"zone": ZONE}}, ZONES),
    (
        "overrides",
        {SIZE: {"zones": ZONE}},
        f"delete zones, and set environments.dev.zones.{SIZE} to {ZONE}",
    ),
    # Settings of one size, and of all.
    ("targets__gke", {"topology": "4x4"}, TOPOLOGY.replace(SIZE, "<size>")),
    (
        "overrides",
        {SIZE: {"targets": {"gke": {"topology": "4x4"}}}},
        TOPOLOGY,
    ),
    (
        "overrides",
        {SIZE: {"batch_rule": "keep"}},
        "delete batch_rule: all sizes have that of training, so that their results can be compared",
    ),
    (
        "overrides",
        {SIZE: {"sequence_length": 20}},
        "delete sequence_length: all sizes have that of training, so that their results can be compared",
    ),
    # Another form of a reservation.
    ("capacity", {"name": "chat"}, "did you mean reservation?"),
    ("capacity", {"reservation_name": "chat"}, "did you mean reservation?"),
    ("capacity", {"type": "spot"}, "set capacity to spot"),
    (
        "capacity",
        {"reservation": "chat", "project": "other-project"},
        "delete project: a reservation is given by its name alone, or as projects/PROJECT/reservations/NAME",
    ),
    (
        "capacity",
        {"reservation": "chat", "zone": ZONE},
        "delete zone: a reservation is given by its name alone, or as projects/PROJECT/reservations/NAME",
    ),
]
VALUES: list[tuple[str, Any, str]] = [
    ("capacity", "reserved", "for example: capacity: {reservation: chat-2026}"),
    ("capacity", "reservation", "for example: capacity: {reservation: chat-2026}"),
    ("capacity", "ondemand", "did you mean on-demand?"),
    ("environments__dev__capacity", "preemptible", "did you mean spot?"),
    ("overrides", {SIZE: {"capacity": "standard"}}, "did you mean on-demand?"),
    (
        "capacity",
        "projects/my-project/zones/us-west4-a/reservations/chat",
        f"set capacity to {{{SHARED}}}",
    ),
    ("target", "agent-platform", "did you mean vertex-ai?"),
    ("environments__dev__target", "gemini", "did you mean vertex-ai?"),
    ("target", "kubernetes", "did you mean gke?"),
    ("target", "TPU VM", "did you mean cloud-tpu?"),
    # The first allowed value, max, would be the opposite of what was meant.
    ("gate", {"metric": "loss", "goal": "minimum", "max_drop": 0.01}, "did you mean min?"),
    ("training__learning_rate_rule", "square root", "did you mean sqrt?"),
]


@pytest.mark.parametrize(("path", "value", "help_"), CASES, ids=[help_ for _, _, help_ in CASES])
def test_the_edit_works(path: str, value: Any, help_: str) -> None:
    """An unknown key is one finding, whose help is the exact edit; applied, it leaves no error."""
    text = document(spec(**{**deepcopy(GKE), path: value}))
    finding = finding_with_id("TPU004", errors(findings_of(text)))
    assert finding.help == help_
    if "<" in help_:
        return  # the size is the reader's to choose
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


@pytest.mark.parametrize(("path", "value", "help_"), VALUES, ids=[help_ for _, _, help_ in VALUES])
def test_the_name_that_was_meant_works(path: str, value: Any, help_: str) -> None:
    """A value by another name is one finding, whose help is the value that was meant; applied, it leaves no error."""
    text = document(spec(**{**deepcopy(GKE), path: value}))
    (finding,) = errors(findings_of(text))
    assert (finding.id, finding.help) == ("TPU007", help_)
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("gate:{max_usd: 5}", "write gate: {max_usd"),
        ("gate: {max_usd:5}", "write max_usd: 5"),
        ("capacity:{reservation: chat}", "write capacity: {reservation"),
        ("capacity: {reservation:chat}", "write reservation: chat"),
    ],
)
def test_a_missing_space_after_the_colon(text: str, hint: str) -> None:
    """YAML reads a key without the space as a part of another key; the edit adds the space, and deletes nothing."""
    broken = read_text(f"{yaml.safe_dump(spec(**deepcopy(GKE)))}{text}\n", "tpucfg.yaml")
    (finding,) = errors(findings_of(broken))
    assert (finding.id, finding.help) == ("TPU004", hint)
    fixed = apply_help(broken, finding)
    assert fixed is not None
    assert fixed.splitlines()[-1] == text.replace(":{", ": {").replace(":5", ": 5").replace(
        "n:c", "n: c"
    )
    assert errors(findings_of(read_text(fixed, "tpucfg.yaml"))) == ()


@pytest.mark.parametrize("place", [(), ("environments", "dev")])
def test_the_size_of_a_missing_key_is_of_the_ladder(place: tuple[str, ...]) -> None:
    """The first size of the ladder is tuned on: one of another generation would change the learning rate."""
    data = spec(**deepcopy(GKE))
    value_at(data, place)["sizes"] = data.pop("sizes")
    del data["training"]["tuned_on"]
    assert_added("training", data, "add tuned_on: v5litepod-16")


@pytest.mark.parametrize(
    "placed",
    [
        {"zones": {SIZE: ZONE}},
        {"cluster": "projects/my-project-dev/locations/us-west4-a/clusters/train"},
        {"cluster": "projects/my-project-dev/locations/us-west4/clusters/train"},
    ],
)
def test_the_region_of_a_missing_key_is_that_of_the_zone(placed: dict[str, Any]) -> None:
    """Zones and clusters name the region, and without any, another environment does."""
    data = spec(**deepcopy(GKE))
    environments = data["environments"]
    environments["prod"] = {"project": "my-project", **placed}
    environments["dev"]["region"] = "us-central1"
    environments["dev"]["sizes"] = []
    assert finding_with_id("TPU005", findings_of(document(data))).help == "add region: us-west4"
    environments["prod"] = {"project": "my-project"}
    environments["dev"] = GKE["environments"]["dev"]
    assert_added("environments.prod", data, "add region: us-west4")


@pytest.mark.parametrize(
    ("metric", "goal"), [("eval_loss", "min"), ("perplexity", "min"), ("accuracy", "max")]
)
def test_the_goal_of_a_missing_key_follows_from_the_metric(metric: str, goal: str) -> None:
    """With the other direction, a run that diverges would pass."""
    data = spec(**deepcopy(GKE), gate={"metric": metric})
    assert (
        finding_with_id("TPU005", findings_of(document(data))).help
        == f"add goal: {goal} and max_drop: 0.01"
    )


def test_a_zone_without_a_region_has_two_edits_that_agree() -> None:
    """The region is that of the zone, which is a key of each size."""
    data = spec(**deepcopy(GKE))
    data["environments"]["dev"] = {"project": "my-project-dev", "zone": ZONE}
    hints = {finding.id: finding.help for finding in errors(findings_of(document(data)))}
    assert hints == {
        "TPU005": "add region: us-west4",
        "TPU004": f"delete zone, and set environments.dev.zones.<size> to {ZONE}",
    }
    data["environments"]["dev"] = {
        "project": "my-project-dev",
        "region": "us-west4",
        "zones": {SIZE: ZONE},
    }
    assert errors(findings_of(document(data))) == ()


def test_a_reservation_of_an_api_has_no_zone() -> None:
    """The reservation of an API loses its zone."""
    name = "projects/acme-capacity/zones/us-west4-a/reservations/chat-2026"
    (finding,) = errors(
        findings_of(document(spec(**deepcopy(GKE), capacity={"reservation": name})))
    )
    assert (
        finding.help == "set capacity.reservation to projects/acme-capacity/reservations/chat-2026"
    )


@pytest.mark.parametrize("text", ["true", "yes", "On"])
def test_a_text_in_place_of_true_or_false(text: str) -> None:
    """In quotes, or with another word of YAML 1.1, it is a text."""
    data = spec(**deepcopy(GKE))
    data["environments"]["dev"]["protect"] = text
    (finding,) = errors(findings_of(document(data)))
    assert finding.help == "write true"


def assert_added(section: str, data: dict[str, Any], hint: str) -> None:
    """Require one finding, about a missing key of a section, whose help leaves no error."""
    text = document(data)
    (finding,) = errors(findings_of(text))
    assert finding.message.startswith(f"{section} needs the key ")
    assert finding.help == hint
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_misspelled_companion_is_one_finding() -> None:
    """`train_tokens` needs `sequence_length`, which is there with a typo: adding it again would be another mistake."""
    training = {
        "tuned_on": SIZE,
        "batch_size": 1024,
        "train_tokens": 4_000_000_000,
        "sequence_lenght": 2048,
    }
    text = document(spec(**{**deepcopy(GKE), "training": training}))
    (finding,) = errors(findings_of(text))
    assert finding.help == "did you mean sequence_length?"


def test_dws_is_a_name_of_flex_start() -> None:
    """The help names flex-start, and the duration that this capacity needs is a finding of its own."""
    text = document(
        spec(**{**deepcopy(GKE), "capacity": "dws", "trainer__max_run_duration": "12h"})
    )
    (finding,) = errors(findings_of(text))
    assert finding.help == "did you mean flex-start?"
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_an_override_of_an_environment_becomes_its_setting() -> None:
    """Layered keys move to the environment; figures of a size have no place there."""
    text = document(spec(**{**deepcopy(GKE), "overrides": {"dev": {"capacity": "spot"}}}))
    (finding,) = errors(findings_of(text))
    assert finding.help == "move the keys of overrides.dev to environments.dev itself"
    fixed = apply_help(text, finding)
    assert fixed is not None
    moved = read_text(fixed, text.file)
    assert errors(findings_of(moved)) == ()
    assert moved.data["environments"]["dev"]["capacity"] == "spot"
    text = document(spec(**{**deepcopy(GKE), "overrides": {"dev": {"batch_size": 8}}}))
    (finding,) = errors(findings_of(text))
    assert (
        finding.help == "delete overrides.dev: dev is an environment, and overrides are for sizes"
    )


def test_the_steps_of_an_override_move_up() -> None:
    """Keys of training.steps are keys of an override itself."""
    data = {
        "training__steps": {"warmup_steps": 200},
        "overrides": {SIZE: {"steps": {"warmup_steps": 20}}},
    }
    text = document(spec(**{**deepcopy(GKE), **data}))
    finding = finding_with_id("TPU004", errors(findings_of(text)))
    fixed = apply_help(text, finding)
    assert fixed is not None
    moved = read_text(fixed, text.file)
    assert errors(findings_of(moved)) == ()
    assert moved.data["overrides"] == {SIZE: {"warmup_steps": 20}}


def test_a_setting_of_several_environments_names_no_single_one() -> None:
    """The key belongs to each environment without it, which the help leaves open."""
    data = deepcopy(GKE)
    data["environments"]["prod"] = {"project": "my-project-prod", "region": "us-west4"}
    text = document(spec(**{**data, "targets": {"gke": {"kube_context": "c"}}}))
    finding = finding_with_id("TPU004", findings_of(text))
    assert (
        finding.help
        == "kube_context belongs under environments.<name>: move it there, or delete it"
    )


def test_tokens_are_a_name_of_train_tokens() -> None:
    """Without steps or epochs, `tokens` is one mistake, and its help names train_tokens."""
    training = {"tuned_on": SIZE, "batch_size": 1024, "tokens": 10**12, "sequence_length": 8192}
    text = document(spec(**{**deepcopy(GKE), "training": training}))
    (finding,) = findings_of(text)
    assert finding.help == "did you mean train_tokens?"
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_a_replacement_does_not_overwrite() -> None:
    """A former key beside the key that replaces it can only be deleted."""
    text = document(
        spec(**{**deepcopy(GKE), "capacity": "on-demand", "targets": {"gke": {"spot": True}}})
    )
    assert (
        finding_with_id("TPU004", findings_of(text)).help == "delete spot: capacity is already set"
    )


def test_a_reservation_of_an_api_loses_its_zone() -> None:
    """The spec works out the zone itself, so the replacement has the project and the name."""
    reservation = {"reservation": "projects/my-project/zones/us-west4-a/reservations/tpu"}
    text = document(
        spec(**{**deepcopy(GKE), "target": "cloud-tpu", "targets": {"cloud-tpu": reservation}})
    )
    finding = finding_with_id("TPU004", findings_of(text))
    line = "capacity: {reservation: projects/my-project/reservations/tpu}"
    assert finding.help == f"replace it by {line} at the top of the file"
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()


def test_a_flexible_start_needs_a_duration_too() -> None:
    """The replacement of FLEX_START is exact; the duration that this capacity needs is a finding of its own."""
    vertex_ai = {"vertex-ai": {"strategy": "FLEX_START"}}
    data = {
        **deepcopy(GKE),
        "targets": vertex_ai,
        "trainer": {"image": "r.io/a:1", "max_run_duration": "12h"},
    }
    text = document(spec(**data))
    finding = finding_with_id("TPU004", findings_of(text))
    assert finding.help == "replace it by capacity: flex-start at the top of the file"
    fixed = apply_help(text, finding)
    assert fixed is not None
    assert errors(findings_of(read_text(fixed, text.file))) == ()
