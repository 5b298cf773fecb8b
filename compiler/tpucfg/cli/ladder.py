"""`tpucfg ladder`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Final, NamedTuple

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.options import SPEC, EnvOption, SizeOption, SpecOption, TargetOption, choice, selection
from tpucfg.cli.table import markdown_table, text_table
from tpucfg.cli.workspace import compiled_spec, project_of
from tpucfg.config.compile import Compiled
from tpucfg.findings import Finding
from tpucfg.plan import Job, Rung
from tpucfg.plan.rung import figures


class _Climb(NamedTuple):
    """Environments that climb the same ladder with the same target in the same region."""

    environments: tuple[str, ...]
    region: str
    target: str
    rungs: tuple[Rung, ...]

    @property
    def title(self) -> str:
        return f"{', '.join(self.environments)}: {self.target} in {self.region}"


def ladder(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    format: Annotated[str, typer.Option("--format", metavar="text|markdown|json", help="How to print.")] = "text",
) -> None:
    """Print the ladder: what changes from rung to rung, and what to think of it.

    Example: tpucfg ladder --env prod --format markdown
    """
    choice(format, tuple(_FORMATS), "--format")
    compiled = compiled_spec(spec, Catalog(), selection(env, size, target), quiet=True)
    for line in _FORMATS[format](compiled, tuple(_climbs(compiled))):
        print(line)


def _climbs(compiled: Compiled) -> Iterator[_Climb]:
    climbs: dict[tuple[Any, ...], list[str]] = {}
    rungs: dict[tuple[Any, ...], tuple[Rung, ...]] = {}
    for name, jobs in groupby(compiled.plan.jobs, key=lambda job: job.environment.name):
        own: list[Job] = list(jobs)
        key = (own[0].environment.region, own[0].target, tuple(job.size for job in own))
        climbs.setdefault(key, []).append(name)
        rungs.setdefault(key, tuple(job.rung for job in own))
    for (region, target, sizes), names in climbs.items():
        yield _Climb(tuple(names), region, target, rungs[region, target, sizes])


def _table(climb: _Climb, tuned_examples: int | None) -> tuple[list[str], list[list[str]]]:
    rows = [_row(rung, tuned_examples) for rung in climb.rungs]
    return list(rows[0]), [list(row.values()) for row in rows]


def _row(rung: Rung, tuned_examples: int | None) -> Mapping[str, str]:
    fixed = {
        "size": rung.size,
        "chips": f"{rung.slice.chips:,}",
        "cores": f"{rung.slice.cores:,}",
        "hosts": f"{rung.slice.hosts:,}",
        "per core": f"{float(rung.per_core):g}",
    }
    changing = {key: f"{int(text):,}" if text.isdecimal() else text for key, text in figures(rung)}
    return fixed | changing | _examples(rung, tuned_examples)


def _examples(rung: Rung, tuned: int | None) -> dict[str, str]:
    """Examples seen, with the difference that rounding a step count up makes."""
    if rung.examples is None or tuned is None:
        return {}
    more = rung.examples - tuned
    return {"examples": f"{rung.examples:,}" + (f" ({more:+,})" if more else "")}


def _tuned_examples(compiled: Compiled) -> int | None:
    training = project_of(compiled).training
    return training.batch_size * training.train_steps if training.train_steps else None


def _remarks(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.level}[{finding.id}]: {finding.message}"


def _text(compiled: Compiled, climbs: Sequence[_Climb]) -> Iterator[str]:
    for number, climb in enumerate(climbs):
        yield from ([""] if number else [])
        yield climb.title
        yield from text_table(*_table(climb, _tuned_examples(compiled)))
    if compiled.findings:
        yield ""
        yield from _remarks(compiled.findings)


def _markdown(compiled: Compiled, climbs: Sequence[_Climb]) -> Iterator[str]:
    for number, climb in enumerate(climbs):
        yield from ([""] if number else [])
        yield f"**{climb.title}**"
        yield ""
        yield from markdown_table(*_table(climb, _tuned_examples(compiled)))
    if compiled.findings:
        yield ""
        yield from (f"- {remark}" for remark in _remarks(compiled.findings))


def _json(compiled: Compiled, climbs: Sequence[_Climb]) -> Iterator[str]:
    findings = [finding._asdict() | {"place": str(finding.place)} for finding in compiled.findings]
    kept = ("id", "level", "message", "place", "help")
    document = {
        "project": project_of(compiled).name,
        "tuned_on": project_of(compiled).training.tuned_on,
        "ladders": [
            {
                "environments": climb.environments,
                "region": climb.region,
                "target": climb.target,
                "rungs": [_rung(rung) for rung in climb.rungs],
            }
            for climb in climbs
        ],
        "findings": [{key: finding[key] for key in kept} for finding in findings],
    }
    yield json.dumps(document, indent=2, ensure_ascii=False)


def _rung(rung: Rung) -> dict[str, Any]:
    return {
        "size": rung.size,
        "chips": rung.slice.chips,
        "cores": rung.slice.cores,
        "hosts": rung.slice.hosts,
        "topology": rung.slice.topology,
        "scale": float(rung.scale),
        "per_core_batch_size": float(rung.per_core),
        "batch_size": rung.batch_size,
        "steps": dict(rung.steps),
        "epochs": float(rung.epochs) if rung.epochs else None,
        "learning_rate": float(rung.learning_rate) if rung.learning_rate else None,
        "examples": rung.examples,
    }


_FORMATS: Final[Mapping[str, Callable[[Compiled, Sequence[_Climb]], Iterator[str]]]] = {
    "text": _text,
    "markdown": _markdown,
    "json": _json,
}
