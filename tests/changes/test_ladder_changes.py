"""Rungs that are added, removed or replaced."""

from typing import Any

from spec_changes import scaling_table, statements
from spec_factory import spec


def test_replacing_rung_is_compared_with_the_replaced_one() -> None:
    """From v2-8 to v2-32: four times the batch, a quarter of the steps, equal examples, a linear learning rate."""
    rate = {"training__learning_rate": 0.1, "training__learning_rate_rule": "linear"}
    before, after = spec(sizes=["v2-8"], **rate), spec(sizes=["v2-32"], **rate)

    assert scaling_table(before, after)["v2-8 → v2-32, new in dev"] == {
        "hosts": "1 → 4 (4×)",
        "cores": "8 → 32 (4×)",
        "global batch": "1,024 → 4,096 (4×)",
        "steps": "4,000 → 1,000 (0.25×)",
        "examples": "4,096,000 (as before)",
        "learning rate": "0.1 → 0.4 (4×)",
    }
    assert statements(before, after) == ["dev: v2-32: replaces v2-8, with 4× its cores"]


def test_added_rung_is_compared_with_the_rung_below() -> None:
    """A rung added at the top of a ladder has the factor of its cores."""
    before, after = spec(), spec(sizes=["v2-8", "v2-32", "v2-128"])

    assert statements(before, after) == [
        "dev: v2-128: added to the ladder, with 4× the cores of v2-32, the rung below"
    ]
    assert [*scaling_table(before, after)] == ["v2-32 → v2-128, new in dev"]
    assert statements(after, before) == ["dev: v2-128: removed from the ladder"]


def test_shifted_ladder_is_no_replacement() -> None:
    """A rung removed at the bottom is unrelated to one added at the top."""
    before, after = (
        spec(sizes=["v2-8", "v2-32", "v2-128"]),
        spec(sizes=["v2-32", "v2-128", "v2-512"]),
    )

    assert statements(before, after) == [
        "dev: v2-512: added to the ladder, with 4× the cores of v2-128, the rung below",
        "dev: v2-8: removed from the ladder",
    ]
    assert [*scaling_table(before, after)] == ["v2-128 → v2-512, new in dev"]


def test_ladder_is_replaced_rung_by_rung() -> None:
    """Each rung of a new generation replaces one; a rung in the middle is replaced between those that stay."""
    gke: dict[str, Any] = {"target": "gke"}
    location = {"dev": {"project": "my-project-dev", "region": "us-east5", "kube_context": "c"}}
    old, new = (
        spec(**gke, environments=location, sizes=sizes, training__tuned_on=sizes[0])
        for sizes in (["v5p-8", "v5p-16"], ["v6e-4", "v6e-8"])
    )
    middle = spec(sizes=["v2-8", "v2-32", "v2-256"]), spec(sizes=["v2-8", "v2-128", "v2-256"])

    assert statements(old, new)[-2:] == [
        "dev: v6e-4: replaces v5p-8, with 0.5× its cores",
        "dev: v6e-8: replaces v5p-16, with 0.5× its cores",
    ]
    assert statements(*middle) == ["dev: v2-128: replaces v2-32, with 4× its cores"]


def test_new_rung_is_compared_in_its_settings() -> None:
    """A new rung differs from the rung below, or from the largest of a ladder that becomes shorter."""
    ladder = {"target": "cloud-tpu", "capacity": "spot", "trainer__args": {"data": "x"}}
    own = {"capacity": "on-demand", "trainer": {"args": {"data": "y"}, "env": {"DEBUG": "1"}}}
    before = spec(**ladder, sizes=["v2-8", "v2-32"])
    above, alone = (
        spec(**ladder, sizes=sizes, overrides={"v2-128": own})
        for sizes in (["v2-8", "v2-32", "v2-128"], ["v2-128"])
    )

    billed = "machines have another price, and can be missing or taken away"
    expected = [
        f"dev: v2-128: capacity on-demand, unlike v2-32 with spot: {billed}",
        "dev: v2-128: argument --data y, unlike v2-32 with x",
        "dev: v2-128: variable DEBUG 1, unlike v2-32 without",
    ]
    assert [line for line in statements(before, above) if "unlike" in line] == expected
    assert [line for line in statements(before, alone) if "unlike" in line] == expected
    alike = spec(**ladder, sizes=["v2-8", "v2-32", "v2-128"])
    assert [line for line in statements(before, alike) if "v2-32" not in line] == []
