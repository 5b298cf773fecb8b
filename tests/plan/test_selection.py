"""Selection of environments and sizes."""

from typing import Any

import pytest

from spec_factory import CATALOG, project, spec
from tpucfg.plan import Selection, SelectionError, plan, select_sizes

SPEC = spec(
    environments={
        "dev": {"project": "my-project-dev", "region": "us-central1"},
        "prod": {
            "project": "my-project-prod",
            "region": "europe-west4",
            "sizes": ["v2-32", "v3-128"],
        },
        "staging": {"project": "my-project-staging", "region": "us-central1"},
    }
)


def selected(**chosen: Any) -> dict[str, tuple[str, ...]]:
    """Return the selected sizes by environment."""
    return {
        environment.name: sizes
        for environment, sizes in select_sizes(project(SPEC), Selection(**chosen))
    }


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, {"dev": ("v2-8", "v2-32"), "prod": ("v2-32", "v3-128"), "staging": ("v2-8", "v2-32")}),
        ({"environments": ("prod",)}, {"prod": ("v2-32", "v3-128")}),
        (
            {"environments": ("staging", "dev")},
            {"dev": ("v2-8", "v2-32"), "staging": ("v2-8", "v2-32")},
        ),
        ({"sizes": ("v3-128",)}, {"prod": ("v3-128",)}),
        ({"sizes": ("v2-8",)}, {"dev": ("v2-8",), "staging": ("v2-8",)}),
        (
            {"sizes": ("v3-128", "v2-32")},
            {"dev": ("v2-32",), "prod": ("v2-32", "v3-128"), "staging": ("v2-32",)},
        ),
        ({"environments": ("dev", "dev"), "sizes": ("v2-8", "v2-8")}, {"dev": ("v2-8",)}),
    ],
)
def test_a_selection_has_the_order_of_the_project(
    chosen: dict[str, Any], expected: dict[str, tuple[str, ...]]
) -> None:
    """A size selects the environments whose ladder has it; the order is the project's, not that of the options."""
    assert selected(**chosen) == expected


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (
            {"environments": ("pord",)},
            "there is no environment pord; did you mean prod? the spec has dev, prod, staging",
        ),
        ({"environments": ("x",)}, "there is no environment x; the spec has dev, prod, staging"),
        (
            {"sizes": ("v3-8",)},
            "v3-8 is in no ladder. The ladders are:\n  dev: v2-8, v2-32\n  prod: v2-32, v3-128\n  staging: v2-8, v2-32",
        ),
        (
            {"environments": ("prod",), "sizes": ("v2-8",)},
            "v2-8 is not in the ladder of prod. The ladders are:",
        ),
        (
            {"environments": ("dev", "prod"), "sizes": ("v2-8",)},
            "v2-8 is not in the ladder of prod.",
        ),
        (
            {"environments": ("prod", "dev"), "sizes": ("v9-8",)},
            "v9-8 is not in the ladder of dev and prod.",
        ),
        ({"sizes": ("v2-8", "v4-8")}, "v4-8 is in no ladder."),
    ],
)
def test_an_unknown_selection_is_an_error(chosen: dict[str, Any], expected: str) -> None:
    """The error about an environment names the most similar one, and that about a size lists all ladders."""
    with pytest.raises(SelectionError) as excinfo:
        plan(project(SPEC), CATALOG, Selection(**chosen))
    assert str(excinfo.value).startswith(expected)
