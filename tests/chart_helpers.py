"""Pictures for tests: those of a spec, and those of ladders that are drawn at random."""

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final
from xml.etree.ElementTree import Element, fromstring

from spec_factory import CATALOG, planned, spec
from tpucfg.charts import ChartSection, narrative, page, picture
from tpucfg.charts.chart import Narrative
from tpucfg.charts.scaling_chart import MeasuredThroughput
from tpucfg.cli.ladder_table import ladder_table
from tpucfg.findings import Finding
from tpucfg.plan import Plan
from tpucfg.plan.grouping import group_ladders

GENERATIONS: Final = tuple(it.name for it in CATALOG.generations())


def stories(plan: Plan, measured: Mapping[str, MeasuredThroughput] | None = None) -> list[Narrative]:
    """The stories of all climbs."""
    return [narrative(plan.project, climb, measured or {}) for climb in group_ladders(plan.jobs)]


def drawn(plan: Plan, measured: Mapping[str, MeasuredThroughput] | None = None) -> str:
    """The picture as SVG."""
    return picture(stories(plan, measured), plan.findings)


def told(
    plan: Plan, measured: Mapping[str, MeasuredThroughput] | None = None, findings: tuple[Finding, ...] = ()
) -> str:
    """The page as HTML."""
    tables = [ladder_table(climb, plan.project.training) for climb in group_ladders(plan.jobs)]
    sections = [ChartSection(story, *table) for story, table in zip(stories(plan, measured), tables, strict=True)]
    return page(plan.project.name, sections, (*plan.findings, *findings))


def parsed(image: str) -> Element:
    """The SVG as a tree; it is well-formed, or this fails."""
    return fromstring(image)  # noqa: S314 - written by the code under test, with nothing that could be expanded


def any_spec(seed: int) -> dict[str, Any]:
    """A spec with two ladders of any sizes and figures of any magnitude; the same seed gives the same spec."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret comes of it
    tuned_on = "v4-8"
    made = spec(
        name=chance.choice(["m", "mnist", "a-name-with-thirty-characters0"]),
        environments={name: _environment(chance) for name in ("dev", "an-environment-with-30-letters")},
        training={
            "tuned_on": tuned_on,
            "batch_size": 8 * 10 ** chance.randint(0, 14),
            **chance.choice([{"train_steps": 10 ** chance.randint(0, 15)}, {"epochs": 2.5}]),
            "learning_rate_rule": chance.choice(["keep", "linear", "sqrt"]),
        },
    )
    if chance.random() < 0.8:
        made["training"]["learning_rate"] = chance.choice([1, 0.1, 0.00123, 1e-7, 12345.678])
    sizes = sorted({size for environment in made["environments"].values() for size in environment["sizes"]})
    changed = chance.choice(sizes)
    found = CATALOG.find(changed)
    assert found is not None
    made["overrides"] = {changed: {"batch_size": found.cores * chance.randint(1, 1000)}}
    return made


def any_measured(plan: Plan, seed: int) -> dict[str, MeasuredThroughput]:
    """Examples per second for some of the rungs, between a thousandth and a trillion, some of another config."""
    chance = random.Random(seed)  # noqa: S311 - likewise
    measured: dict[str, dict[str, Fraction]] = {}
    for job in plan.jobs:
        if chance.random() < 0.7:
            speed = Fraction(chance.randint(1, 10**6), 1000) * 10 ** chance.randint(0, 9)
            measured.setdefault(job.environment.name, {})[job.size] = speed
    return {
        name: MeasuredThroughput(speeds, [size for size in speeds if chance.random() < 0.3])
        for name, speeds in measured.items()
    }


def any_plan(seed: int) -> Plan:
    """Such a spec, planned."""
    return planned(any_spec(seed))


def _environment(chance: random.Random) -> dict[str, Any]:
    sizes = [it.size for it in CATALOG.generation(chance.choice(GENERATIONS)).slices]
    chosen = chance.sample(sizes, min(len(sizes), chance.choice([1, 2, 3, 4, 6, 12])))
    return {"project": "my-project", "region": "us-central1", "sizes": sorted(chosen, key=_number)}


def _number(size: str) -> int:
    return int(size.rpartition("-")[2])
