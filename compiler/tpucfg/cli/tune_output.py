"""The output of `tpucfg tune`: the memory, the order of the candidates, and what was not tried."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tpucfg.cli.fit_output import used_text
from tpucfg.cli.table import Cell, TableSection, known, print_sections
from tpucfg.fit.rung_fit import gib, interval_text, step_time
from tpucfg.fit.tune_candidates import Candidate, Choices, Line, step_key, tried_flags
from tpucfg.fit.tune_search import Fate, RankedCandidate, Ranking, Trial, Trials, fate, frontier
from tpucfg.number_format import UNKNOWN, format_dollars, format_rounded
from tpucfg.paths import grouped
from tpucfg.plan import Job
from tpucfg.plan.job import FlagValue
from tpucfg.text_format import format_count, json_text, listed, printable

_QUOTE: Final = '"'
_FATES: Final[Mapping[Fate, str]] = {
    "larger fits": "a larger micro-batch of the same other values fits",
    "smaller does not fit": "a smaller micro-batch of the same other values does not fit",
    "failures": "two candidates of the same other values failed",
    "not reached": "the search ended before",
}
_NEVER: Final = "XLA flags, topologies, capacities, sharding, and every value that is not listed"


class TuneReport(NamedTuple):
    """A search, and what came of it."""

    job: Job
    """The rung as the spec has it."""
    choices: Choices
    candidates: Sequence[Candidate]
    unseen: int
    lines: Sequence[Line]
    trials: Trials
    rankings: Sequence[Ranking]

    @property
    def title(self) -> str:
        """The heading: what stays the same in every candidate."""
        rung, environment = self.job.rung, self.job.environment
        steps = f", {format_count(rung.train_steps, 'step')}" if rung.train_steps else ""
        rate = f", learning rate {rung.learning_rate}" if rung.learning_rate else ""
        place = f"{environment.name} {rung.size}: {self.job.target} in {environment.region}"
        if {*self.choices.batch_size} - {rung.batch_size}:
            return f"{place}; each candidate sees the examples of the spec, with the steps and the rate of its batch"
        return f"{place}; each candidate has batch {rung.batch_size:,}{steps}{rate}"

    def is_tried(self, line: Line) -> bool:
        """Return True if a candidate of a line was compiled, or failed."""
        return any(step_key(candidate) in self.trials for candidate in line.candidates)

    @property
    def not_compiled(self) -> Mapping[Fate, int]:
        """The number of candidates that were not compiled, by the reason."""
        return Counter(
            fate(line, candidate, self.trials)
            for line in self.lines
            for candidate in line.candidates
            if step_key(candidate) not in self.trials
        )

    @property
    def refused(self) -> Mapping[str, Sequence[Candidate]]:
        """The candidates that the plan refuses, or cannot run where they stand, by the reason."""
        return grouped(
            (candidate.problem, candidate) for candidate in self.candidates if candidate.problem
        )


def print_report(report: TuneReport, format: str) -> None:
    """Print a search as text or as JSON."""
    if format == "json":
        sys.stdout.write(json_text(_data(report)))
        return
    print(printable(report.title), end="\n\n")
    rows = [[*_memory_cells(report, line)] for line in _sorted_lines(report)]
    memory = TableSection("the largest micro-batch that fits, as compiled", rows)
    rankings = [
        TableSection(
            _order_title(report, ranking),
            [[*_ranking_cells(report, ranking, row)] for row in ranking.rows],
            ranking.notes,
        )
        for ranking in report.rankings
    ]
    print_sections([memory, *rankings], format, [*_rest(report)])


def _order_title(report: TuneReport, ranking: Ranking) -> str:
    span = "the run" if ranking.is_of_run else "1,000 steps"
    if ranking.batch_size != report.job.rung.batch_size:
        span += f" of batch {ranking.batch_size:,}"
    if not any(row.interval for row in ranking.rows):
        return (
            f"no order is claimed, as there is no forecast; the least cost of {span} by the bound"
        )
    return f"order by {ranking.unit} of {span}; candidates of one rank are equal within the error of the forecast"


def _memory_cells(report: TuneReport, line: Line) -> Iterator[Cell]:
    largest, refused = frontier(line, report.trials)
    shown = largest or refused
    memory = shown.result.memory if shown and shown.result else None
    yield from _value_cells(report, line.candidates[0])
    yield "micro-batch", f"{largest.micro_batch:,}" if largest else "none" if refused else UNKNOWN
    yield "grad_accum", known(largest, lambda trial: f"{trial.outcome.job.rung.grad_accum or 1:,}")
    yield "HBM GiB", known(memory, used_text)
    yield "available", known(memory, lambda each: gib(each.available))
    if refused and refused.result:
        yield "next larger", f"{refused.micro_batch:,} needs ≥ {gib(refused.result.memory.used)}"
    else:
        yield "next larger", "" if largest else "failed" if report.is_tried(line) else "not tried"


def _sorted_lines(report: TuneReport) -> list[Line]:
    """Return the lines by size and batch, those that fit with the last listed values of their flags first."""
    sizes = list(dict.fromkeys(candidate.values.size for candidate in report.candidates))

    def order(line: Line) -> tuple[Any, ...]:
        values, largest = line.candidates[0].values, frontier(line, report.trials)[0]
        listed_at = [
            -texts.index(text)
            for (_, text), texts in zip(values.args, report.choices.args.values(), strict=False)
        ]
        return (
            sizes.index(values.size),
            values.batch_size,
            largest is None,
            listed_at,
            values.model_parallel,
        )

    return sorted(report.lines, key=order)


def _value_cells(report: TuneReport, candidate: Candidate) -> Iterator[Cell]:
    """Yield the values that tell candidates apart, besides their accumulation."""
    values = candidate.values
    yield "size", values.size
    if {*report.choices.batch_size} - {report.job.rung.batch_size}:
        yield "batch", f"{values.batch_size:,}"
    yield "model_parallel", str(values.model_parallel)
    yield from zip(
        report.choices.args, map(_flag_text, tried_flags(candidate, report.choices)), strict=True
    )


def _flag_text(value: Any) -> str:
    return "unset" if value is False else "set" if value is None else str(value)


def _ranking_cells(report: TuneReport, ranking: Ranking, row: RankedCandidate) -> Iterator[Cell]:
    money = format_dollars if ranking.unit == "USD" else format_rounded
    measured = " measured" if row.is_measured else ""
    yield "rank", known(row.rank, str)
    yield from _value_cells(report, row.trial.candidate)
    yield "micro-batch", f"{row.trial.micro_batch:,}"
    yield "grad_accum", f"{row.trial.outcome.job.rung.grad_accum or 1:,}"
    yield "step", known(row.interval, lambda interval: f"{interval_text(interval)}{measured}")
    yield ranking.unit, known(row.costs, lambda costs: _range(costs, money))
    yield "step ≥", known(row.bound, step_time)
    yield f"{ranking.unit} ≥", known(row.least, money)
    yield "spec", "now" if row.trial.candidate.is_current else ""


def _range(costs: tuple[Fraction, Fraction, Fraction], text: Callable[[Fraction], str]) -> str:
    return text(costs[1]) if costs[0] == costs[2] else f"{text(costs[0])} to {text(costs[2])}"


def _rest(report: TuneReport) -> Iterator[str]:
    """Yield the lines about what was compiled, what was not, and why."""
    done = [trial for trial in report.trials.values() if trial.result]
    compiled = sum(not trial.is_kept and not trial.outcome.is_known for trial in done)
    known, failed = len(done) - compiled, len(report.trials) - len(done)
    yield (
        f"{format_count(len(report.candidates), 'candidate')}: {compiled} compiled now"
        + (f", {known} as results/tune.json or results/fit.json have them" if known else "")
        + (f", {failed} failed" if failed else "")
    )
    if report.unseen:
        yield f"left out: {report.unseen}, as the program gets no other flag for their model_parallel or grad_accum"
    for flag in _without_effect(report):
        yield f"no effect: every value of {flag} gives the same program; is it a flag that the program reads?"
    for reason, count in sorted(report.not_compiled.items()):
        yield f"not compiled: {count}, as {_FATES[reason]}"
    for problem, candidates in report.refused.items():
        if candidates[0].job:
            tried = sum(step_key(candidate) in report.trials for candidate in candidates)
            of_all = f"{tried:,} of {format_count(len(candidates), 'candidate')}"
            yield f"tried all the same: {of_all}, though {problem}"
        else:
            names = listed(
                [candidate_name(candidate, report.choices) for candidate in candidates], limit=2
            )
            yield f"refused by the plan: {names}: {problem}"
    yield f"not tried: {_NEVER}"


def _without_effect(report: TuneReport) -> Iterator[str]:
    """Yield the flags whose values make no difference to any compiled program."""
    done = [
        (trial.candidate, trial.result.stablehlo)
        for trial in report.trials.values()
        if trial.result
    ]
    for index, flag in enumerate(report.choices.args):
        programs: dict[object, dict[FlagValue | bool, str]] = {}
        for candidate, program in done:
            values = tried_flags(candidate, report.choices)
            others = (candidate.values._replace(args=()), values[:index], values[index + 1 :])
            programs.setdefault(others, {})[values[index]] = program
        compared = [by_value for by_value in programs.values() if len(by_value) > 1]
        if compared and all(len({*by_value.values()}) == 1 for by_value in compared):
            yield flag


def candidate_name(candidate: Candidate, choices: Choices) -> str:
    """Return the values of a candidate on one line."""
    values = candidate.values
    flags = (f"{flag}={text.strip(_QUOTE)}" for flag, text in values.args)
    parts = (
        f"model_parallel={values.model_parallel}",
        f"grad_accum={values.grad_accum or 1}",
        *flags,
    )
    batch = (f"batch_size={values.batch_size}",) if choices.batch_size else ()
    return " ".join((values.size, *batch, *parts))


# JSON.


def _data(report: TuneReport) -> dict[str, Any]:
    return {
        "environment": report.job.environment.name,
        "size": report.job.size,
        "batch_size": report.job.rung.batch_size,
        "memory": [_memory_payload(report, line) for line in _sorted_lines(report)],
        "rankings": [_ranking_payload(report, ranking) for ranking in report.rankings],
        "candidates": len(report.candidates),
        "not_compiled": dict(sorted(report.not_compiled.items())),
        "problems": [
            _values_payload(report, each)
            | {"problem": each.problem, "is_refused": each.job is None}
            for each in report.candidates
            if each.problem
        ],
    }


def _values_payload(report: TuneReport, candidate: Candidate) -> dict[str, Any]:
    values = candidate.values
    flags = (
        tried_flags(candidate, report.choices)
        if candidate.job
        else [text for _, text in values.args]
    )
    return {
        "size": values.size,
        "batch_size": values.batch_size,
        "model_parallel": values.model_parallel,
        "grad_accum": values.grad_accum or 1,
        "args": {
            flag: value
            for flag, value in zip(report.choices.args, flags, strict=False)
            if value is not False
        },
    }


def _memory_payload(report: TuneReport, line: Line) -> dict[str, Any]:
    largest, refused = frontier(line, report.trials)
    values = _values_payload(report, (largest.candidate if largest else line.candidates[0]))
    if largest is None:
        values |= {"grad_accum": None}
    values |= {"is_tried": report.is_tried(line)}
    return values | {"fits": _trial_payload(largest), "refused": _trial_payload(refused)}


def _trial_payload(trial: Trial | None) -> dict[str, Any] | None:
    if trial is None or trial.result is None:
        return None
    return {"micro_batch": trial.micro_batch, "hbm": trial.result.memory._asdict()}


def _ranking_payload(report: TuneReport, ranking: Ranking) -> dict[str, Any]:
    return {
        "batch_size": ranking.batch_size,
        "unit": ranking.unit,
        "of_run": ranking.is_of_run,
        "notes": list(ranking.notes),
        "rows": [_row_payload(report, row) for row in ranking.rows],
    }


def _row_payload(report: TuneReport, row: RankedCandidate) -> dict[str, Any]:
    interval, costs = row.interval, row.costs
    return {
        "rank": row.rank,
        **_values_payload(report, row.trial.candidate),
        "is_current": row.trial.candidate.is_current,
        "is_measured": row.is_measured,
        "step_seconds": [float(each) for each in interval[:3]] if interval else None,
        "cost": costs,
        "bound_seconds": row.bound,
        "least_cost": row.least,
    }
