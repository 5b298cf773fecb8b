"""Charts for tests: those of a spec, and those of random ladders."""

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final
from xml.etree.ElementTree import Element, fromstring

from spec_factory import CATALOG, planned, spec
from tpucfg.charts import MeasuredThroughput, build_narrative, render_svg
from tpucfg.charts.narrative import Narrative
from tpucfg.plan import Plan
from tpucfg.plan.selection import group_ladders

GENERATIONS: Final = tuple(generation.name for generation in CATALOG.generations())


def narratives(
    plan: Plan, measured: Mapping[str, MeasuredThroughput] | None = None
) -> list[Narrative]:
    """Return the narratives of all ladders."""
    return [
        build_narrative(plan.project, group, measured or {}) for group in group_ladders(plan.jobs)
    ]


def svg_of(plan: Plan, measured: Mapping[str, MeasuredThroughput] | None = None) -> str:
    """Return the charts as SVG."""
    return render_svg(narratives(plan, measured), plan.findings)


def parsed(svg: str) -> Element:
    """Parse an SVG, which fails if it is not well-formed."""
    return fromstring(svg)  # noqa: S314 - written by the code under test, without entities


def random_spec(seed: int) -> dict[str, Any]:
    """Return a spec with two ladders of any sizes and figures of any magnitude, the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311 - not for cryptography
    tuned_on, grad_accum = "v4-8", rng.choice([1, 2, 8])
    data = spec(
        name=rng.choice(["m", "mnist", "a-name-with-thirty-characters0"]),
        environments={
            name: _random_environment(rng) for name in ("dev", "an-environment-with-30-letters")
        },
        training={
            "tuned_on": tuned_on,
            "batch_size": 8 * grad_accum * 10 ** rng.randint(0, 13),
            **({"grad_accum": grad_accum} if grad_accum > 1 else {}),
            **rng.choice([{"train_steps": 10 ** rng.randint(0, 15)}, {"epochs": 2.5}]),
            "learning_rate_rule": rng.choice(["keep", "linear", "sqrt"]),
        },
    )
    if rng.random() < 0.8:
        data["training"]["learning_rate"] = rng.choice([1, 0.1, 0.00123, 1e-7, 12345.678])
    sizes = sorted(
        {size for environment in data["environments"].values() for size in environment["sizes"]}
    )
    overridden = rng.choice(sizes)
    slice_ = CATALOG.find(overridden)
    assert slice_ is not None
    data["overrides"] = {overridden: {"batch_size": slice_.cores * rng.randint(1, 1000)}}
    return data


def random_measured(plan: Plan, seed: int) -> dict[str, MeasuredThroughput]:
    """Return examples per second for some rungs, between a thousandth and a trillion, some of them outdated."""
    rng = random.Random(seed)  # noqa: S311 - not for cryptography
    measured: dict[str, dict[str, Fraction]] = {}
    for job in plan.jobs:
        if rng.random() < 0.7:
            speed = Fraction(rng.randint(1, 10**6), 1000) * 10 ** rng.randint(0, 9)
            measured.setdefault(job.environment.name, {})[job.size] = speed
    return {
        name: MeasuredThroughput(speeds, [size for size in speeds if rng.random() < 0.3])
        for name, speeds in measured.items()
    }


def random_plan(seed: int) -> Plan:
    """Return the plan of a random spec."""
    return planned(random_spec(seed))


def _random_environment(rng: random.Random) -> dict[str, Any]:
    sizes = [slice_.size for slice_ in CATALOG.generation(rng.choice(GENERATIONS)).slices]
    chosen = rng.sample(sizes, min(len(sizes), rng.choice([1, 2, 3, 4, 6, 12])))
    return {"project": "my-project", "region": "us-central1", "sizes": sorted(chosen, key=_count)}


def _count(size: str) -> int:
    return int(size.rpartition("-")[2])
