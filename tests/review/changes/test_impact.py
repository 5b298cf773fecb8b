"""What a change means, from the plans of both sides."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from spec_factory import CATALOG, SPEC, project, spec
from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.git.snapshots import Snapshot
from tpucfg.number_format import format_percent
from tpucfg.render.pipeline import compile_project
from tpucfg.review.changes.impact import Impact, compute_impact
from tpucfg.review.changes.scaling_table import row_label, scaling_cell, scaling_columns

STEPS = {"training__steps": {"warmup_steps": 200}}
RATE = {"training__learning_rate": 0.1, "training__learning_rate_rule": "linear"}


def side(data: Any | None) -> CompiledRevision:
    """A side with this spec, or with none."""
    there = Snapshot("x", Path("tpucfg.yaml"), "tpucfg.yaml", exists=data is not None)
    if data is None:
        return CompiledRevision(there, None, (), (), "")
    made = project(data)
    compiled = compile_project(made, CATALOG)
    return CompiledRevision(there, made, compiled.request_bodies, compiled.findings, made.document.text)


def between(before: Any | None, after: Any | None) -> Impact:
    """What the change means."""
    return compute_impact(side(before), side(after))


def remarks(before: Any | None, after: Any | None) -> list[str]:
    """The remarks in words."""
    return [remark.plain for remark in between(before, after).remarks]


def figures(before: Any | None, after: Any | None) -> dict[str, dict[str, str]]:
    """The table, by rung and column."""
    rows = between(before, after).rows
    return {row_label(row): {name: scaling_cell(row, name) for name in scaling_columns(rows)} for row in rows}


def test_exchanged_rung_is_compared_with_the_one_in_whose_place_it_came() -> None:
    """From v2-8 to v2-32: four times the batch, a quarter of the steps, equal examples, the rate by the linear rule."""
    before, after = spec(sizes=["v2-8"], **RATE), spec(sizes=["v2-32"], **RATE)

    assert figures(before, after)["v2-8 → v2-32, new in dev"] == {
        "hosts": "1 → 4 (4×)",
        "cores": "8 → 32 (4×)",
        "global batch": "1,024 → 4,096 (4×)",
        "steps": "4,000 → 1,000 (0.25×)",
        "examples": "4,096,000 (as before)",
        "learning rate": "0.1 → 0.4 (4×)",
    }
    assert remarks(before, after) == ["dev: v2-32 takes the place of v2-8, with 4× its cores"]


def test_new_rung_is_compared_with_the_rung_below() -> None:
    """A ladder that grows at its end says how far the step is."""
    before, after = spec(), spec(sizes=["v2-8", "v2-32", "v2-128"])

    assert remarks(before, after) == ["dev: v2-128 joins the ladder, with 4× the cores of v2-32, the rung below"]
    assert [*figures(before, after)] == ["v2-32 → v2-128, new in dev"]
    assert remarks(after, before) == ["dev: v2-128: leaves the ladder"]


def test_ladder_that_slides_is_no_exchange() -> None:
    """What leaves at the bottom has nothing to do with what joins at the top."""
    before, after = spec(sizes=["v2-8", "v2-32", "v2-128"]), spec(sizes=["v2-32", "v2-128", "v2-512"])

    assert remarks(before, after) == [
        "dev: v2-8: leaves the ladder",
        "dev: v2-512 joins the ladder, with 4× the cores of v2-128, the rung below",
    ]
    assert [*figures(before, after)] == ["v2-128 → v2-512, new in dev"]


def test_ladder_is_exchanged_rung_by_rung() -> None:
    """One sentence tells a whole generation, and rungs with the same figures need no table; a middle one keeps both."""
    gke: dict[str, Any] = {"target": "gke"}
    location = {"dev": {"project": "my-project-dev", "region": "us-east5", "kube_context": "c"}}
    old, new = (
        spec(**gke, environments=location, sizes=sizes, training__tuned_on=sizes[0])
        for sizes in (["v5p-8", "v5p-16"], ["v6e-4", "v6e-8"])
    )
    middle = spec(sizes=["v2-8", "v2-32", "v2-256"]), spec(sizes=["v2-8", "v2-128", "v2-256"])

    assert remarks(old, new)[-1] == (
        "dev: v6e-4 takes the place of v5p-8 and v6e-8 of v5p-16, each with 0.5× the cores"
    )
    assert remarks(*middle) == ["dev: v2-128 takes the place of v2-32, with 4× its cores"]


def test_what_is_removed_is_told() -> None:
    """A figure that goes is named with what it was, in words and in the table; a run that stays is not spoken of."""
    before, after = spec(**STEPS, **RATE), spec()

    assert remarks(before, after) == [
        "no learning rate is set any longer; it was 0.1 on v2-8",
        "every config: warmup_steps is set no longer",
    ]
    assert figures(before, after)["v2-8"] == {"learning rate": "0.1 → –", "warmup_steps": "200 → –"}
    assert remarks(after, before)[0] == "a learning rate is set: 0.1 on v2-8, by the rule linear"


def test_steps_that_become_epochs_are_told() -> None:
    """The table keeps the steps that went."""
    before = spec()
    after = spec(**{**SPEC, "training": {"tuned_on": "v2-8", "batch_size": 1024, "epochs": 10}})

    assert "every config: the run is counted in epochs, and no longer in steps" in remarks(before, after)
    assert figures(before, after)["v2-8"]["steps"] == "4,000 → –"


@pytest.mark.parametrize(
    ("share", "said"), [(25, "2.5%"), (2, "0.2%"), (400, "40%"), (1000, "100%"), (Fraction(1, 30), "less than 0.01%")]
)
def test_share_is_never_rounded_away(share: int | Fraction, said: str) -> None:
    """What is some is not shown as none."""
    assert format_percent(Fraction(share) / 1000) == said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"training__batch_size": 2048}, "the global batch is 2× what it was"),
        ({"training__batch_size": 2048}, "the learning rate stays as it was"),
        ({"training__batch_size": 2048, "training__train_steps": 2000}, "the run sees as many examples as before"),
        ({"training__train_steps": 8000}, "the run sees 2× the examples"),
        ({"training__learning_rate": 0.2}, "the learning rate is 2× what it was"),
        ({"training__steps": {"warmup_steps": 1600}}, "warmup_steps is now 40% of the run, and was 5%"),
    ],
)
def test_proportions_are_told_once_for_all_rungs(changed: dict[str, Any], said: str) -> None:
    """Each is one remark about every config, though the figures differ from rung to rung."""
    before = spec(**STEPS, **RATE)

    assert f"every config: {said}" in remarks(before, spec(**{**STEPS, **RATE, **changed}))


def test_rounded_steps_are_no_proportion_of_their_own() -> None:
    """A rung whose steps were rounded up is told with the others; the table has its own figures."""
    before = spec(sizes=["v2-8", "v2-32", "v2-128"], **STEPS)
    after = spec(sizes=["v2-8", "v2-32", "v2-128"], training__train_steps=1000, **STEPS)

    assert remarks(before, after)[0] == "every config: the run sees 0.25× the examples"
    assert figures(before, after)["v2-128"]["examples"] == "4,096,000 → 1,032,192 (0.252×)"


def test_region_says_what_becomes_of_the_data() -> None:
    """The bucket stays behind with its objects, or goes with them: that is grave."""
    moved = {"project": "my-project-dev", "region": "europe-west4"}
    europe = spec(environments={"dev": moved}, sizes=["v2-8"])
    losing = spec(environments={"dev": {**SPEC["environments"]["dev"], "keep_data": False}}, sizes=["v2-8"])

    (_, kept) = between(spec(sizes=["v2-8"]), europe).remarks
    assert "stays behind with its objects" in kept.plain
    assert not kept.statement.destructive
    (gone, *_) = between(losing, europe).remarks
    assert "is deleted with its objects" in gone.plain
    assert gone.statement.destructive


def test_protection_is_grave() -> None:
    """What no longer protects comes first; what begins to protect is told like anything else."""
    open_, closed = (
        spec(environments={"dev": {**SPEC["environments"]["dev"], "protect": protect}}) for protect in (False, True)
    )

    assert [it.statement.destructive for it in between(closed, open_).remarks] == [True]
    assert [it.statement.destructive for it in between(open_, closed).remarks] == [False]


def test_environment_that_leaves_keeps_its_stack() -> None:
    """Its resources stay until somebody ends the stack, and the command is given; so they do where the spec goes."""
    two = spec(environments={**SPEC["environments"], "prod": {"project": "p-prod-1", "region": "us-central1"}})

    assert remarks(two, spec()) == [
        "prod: leaves the spec; its stack keeps every resource until somebody ends it with pulumi destroy --stack prod"
    ]
    assert len(remarks(two, None)) == 2
    assert remarks(spec(), two) == ["prod: a new environment, on vertex-ai in us-central1: v2-8, v2-32"]


def test_protected_environment_that_leaves_is_grave() -> None:
    """Pulumi refuses to destroy what is protected, so the command alone would not do: all steps are given."""
    prod = {"project": "p-prod-1", "region": "us-central1", "protect": True}
    (told,) = between(spec(environments={**SPEC["environments"], "prod": prod}), spec()).remarks

    assert told.statement.destructive
    assert told.plain == (
        "prod: leaves the spec while it is protected: its stack keeps every resource, and Pulumi refuses to destroy "
        "it; to end it, bring it back with protect: false, run pulumi up --stack prod, then "
        "pulumi destroy --run-program --stack prod, and take it out of the spec after that"
    )


def test_first_spec_is_its_figures() -> None:
    """Without a spec before there is nothing to compare, and no remark; every rung is shown with its figures."""
    assert remarks(None, spec()) == []
    assert figures(None, spec())["v2-32, new in dev"]["global batch"] == "4,096"


def test_warnings_come_and_go() -> None:
    """A warning that is worded anew is new and does not end; one that the spec allows is still there, and told so."""
    small, large = spec(training__train_steps=300), spec(training__train_steps=200)
    allowed = spec(training__train_steps=300, allow={"TPU042": "a try"})

    assert [it.id for it in between(spec(), small).new] == ["TPU042"]
    assert [it.id for it in between(small, large).new] == ["TPU042"]
    assert between(small, large).gone == ()
    silenced = between(small, allowed)
    assert silenced.gone == ()
    assert [it.id for it in silenced.allowed] == ["TPU042"]
    assert remarks(small, allowed) == ["now allowed: TPU042 (a try)"]
    assert remarks(allowed, small) == ["no longer allowed: TPU042"]
    assert [it.id for it in between(allowed, small).new] == ["TPU042"]


def test_error_that_is_allowed_is_told_as_one() -> None:
    """Though nothing has it yet: it stops nobody from now on."""
    assert remarks(spec(), spec(allow={"TPU021": "by hand"})) == [
        "now allowed, although it is an error: TPU021 (by hand)"
    ]


@pytest.mark.parametrize(
    ("before", "after", "said", "brief"),
    [
        (
            {"gate": {"min_scaling_efficiency": 0.8}},
            {},
            "the gate falls away: a rung is climbed whatever was measured on the one below",
            "the gate falls away",
        ),
        (
            {"gate": {"min_scaling_efficiency": 0.8}},
            {"gate": {"min_scaling_efficiency": 0.1}},
            "the gate's min_scaling_efficiency goes from 0.8 to 0.1: it is weaker",
            "gate changed",
        ),
        (
            {"gate": {"min_scaling_efficiency": 0.8}},
            {"gate": {"min_scaling_efficiency": 0.9}},
            "the gate's min_scaling_efficiency goes from 0.8 to 0.9: it is stronger",
            "gate changed",
        ),
        (
            {},
            {"gate": {"min_scaling_efficiency": 0.8}},
            "a gate stands between the rungs from now on: min_scaling_efficiency 0.8",
            "a gate added",
        ),
        (
            {"prices": {"v2-8": 4.5}},
            {"prices": {"v2-8": 5, "v2-32": 24}},
            "the prices change: v2-8 4.5 → 5, v2-32 – → 24",
            "prices changed",
        ),
    ],
)
def test_terms_are_told(before: dict[str, Any], after: dict[str, Any], said: str, brief: str) -> None:
    """The gate and the prices stand in no config, and are a change."""
    (remark,) = between(spec(**before), spec(**after)).remarks

    assert remark.plain == said
    assert remark.statement.headline == brief


def test_many_environments_are_told_together() -> None:
    """What differs by the environment's own name alone is one sentence; of many the first are named."""
    sides = [
        spec(environments={f"env-{at}": {"project": f"p-env-{at}", "region": region} for at in range(1, 51)})
        for region in ("us-central1", "europe-west4")
    ]
    told = [it for it in remarks(*sides) if "bucket" in it]

    assert len(told) == 1
    assert told[0].startswith("50 environments (env-1, env-10, env-11, env-12, env-13, env-14, env-15, env-16 and 42 ")
    assert "<env>" in told[0]


def test_other_machine_has_other_hosts() -> None:
    """An override of the machine changes nothing of the training, and the hosts are shown."""
    gke: dict[str, Any] = {"target": "gke", "sizes": ["v6e-8"], "training__tuned_on": "v6e-8"}
    location = {"dev": {"project": "my-project-dev", "region": "us-central1", "kube_context": "c"}}
    before = spec(**gke, environments=location)
    after = spec(**gke, environments=location, overrides={"v6e-8": {"machine": "ct6e-standard-4t"}})

    assert figures(before, after)["v6e-8"] == {"hosts": "1 → 2 (2×)"}
    assert any("the machine goes from" in remark for remark in remarks(before, after))
