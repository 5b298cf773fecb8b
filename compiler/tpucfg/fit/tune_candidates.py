"""The candidates of `tpucfg tune`: a rung on other sizes, with its batch divided otherwise and with other arguments.

A candidate is the spec with replaced values, as if it had been tuned there with the rung's batch, steps and rate. So
the plan works out, checks and names its job as it does for a rung.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.findings import errors
from tpucfg.fit.fit_file import inputs_id
from tpucfg.fit.inputs import fit_inputs
from tpucfg.fit.rung_fit import fit_key
from tpucfg.plan import Job, Rung, Selection, SelectionError, plan
from tpucfg.plan.job import FlagValue, flag_values
from tpucfg.plan.rung import NO_OVERRIDE, decimal_text, make_rung
from tpucfg.render.pipeline import compile_project
from tpucfg.spec import Project
from tpucfg.spec.parse import parse_project
from tpucfg.text_format import dotted
from tpucfg.yamldoc import Assignment, Document, KeyPath
from tpucfg.yamldoc.edits import EditError, remove_values, replace_values, set_value

MAX_LINES: Final = 64
"""The most combinations of sizes, batches, parallelism and arguments, each of which takes two or three compilations."""
_OF_THE_PLACE: Final = frozenset(("TPU021", "TPU022", "TPU024", "TPU027"))
"""Errors about a size that the region or the service does not offer: it can be compiled all the same."""
_RUNG_FIGURES: Final = (
    *(
        "batch_size",
        "per_device_batch_size",
        "learning_rate",
        "grad_accum",
        "model_parallel",
        "fallback",
    ),
)
"""The keys of an override that a candidate sets itself, or that are about other rungs."""


class Choices(NamedTuple):
    """The values to try; for an empty field, those of the rung."""

    sizes: tuple[str, ...] = ()
    grad_accum: tuple[int, ...] = ()
    model_parallel: tuple[int, ...] = ()
    batch_size: tuple[int, ...] = ()
    args: Mapping[str, tuple[str, ...]] = {}
    """The values of a flag as YAML texts, in the order of the spec."""


class Values(NamedTuple):
    """The values of one candidate."""

    size: str
    batch_size: int
    model_parallel: int
    args: tuple[tuple[str, str], ...]
    """The flags that are tried, each with a YAML text."""
    grad_accum: int | None


class Candidate(NamedTuple):
    """One way to run the rung."""

    values: Values
    project: Project
    """The spec with the candidate's values."""
    job: Job | None
    """None if the plan refuses it."""
    problem: str = ""
    """The reason why the plan refuses it, or why it cannot run where it stands: its region does not offer the size."""
    is_current: bool = False
    """True for the rung as the spec has it."""


class Line(NamedTuple):
    """Candidates that differ only in their accumulation, from the smallest micro-batch to the largest."""

    candidates: tuple[Candidate, ...]


def read_choices(document: Document, sizes: Sequence[str] = ()) -> Choices:
    """Return the values that the section `tune` of a valid spec has; `sizes` replace its sizes."""
    section: Mapping[str, Any] = document.data.get("tune", {})
    args = {
        flag: tuple(
            _yaml_text(document, ("tune", "args", flag, index)) for index in range(len(values))
        )
        for flag, values in section.get("args", {}).items()
    }
    counts = {
        key: tuple(map(int, section.get(key, ())))
        for key in ("grad_accum", "model_parallel", "batch_size")
    }
    return Choices(tuple(sizes or section.get("sizes", ())), **counts, args=args)


def _yaml_text(document: Document, path: KeyPath) -> str:
    node = document.node(path)
    return (
        json.dumps(node.value)
        if node and isinstance(node.value, str)
        else document.source_text(path) or "null"
    )


def count_lines(rung: Rung, choices: Choices) -> int:
    """Return the number of combinations that the lists make for a rung, whatever their accumulation."""
    count = len({rung.size, *choices.sizes}) * len({rung.batch_size, *choices.batch_size})
    for values in (choices.model_parallel, *choices.args.values()):
        count *= len(values) or 1
    return count


class Candidates(NamedTuple):
    """The candidates for a rung."""

    rows: tuple[Candidate, ...]
    """The rung as the spec has it, then the others."""
    unseen: int
    """Candidates that are left out, as the program gets nothing of the value that differs from another one's."""


def plan_candidates(project: Project, catalog: Catalog, job: Job, choices: Choices) -> Candidates:
    """Return the candidates for a job's rung; of those that would compile alike, only one."""
    known: dict[str, Candidate] = {}
    unseen = 0
    alike: set[Values] = set()
    current = Values(
        job.size, job.rung.batch_size, job.rung.model_parallel, (), job.rung.grad_accum
    )
    rows = [Candidate(current, project, job, is_current=True)]
    rows += (_planned(project, catalog, job, values) for values in _values(catalog, job, choices))
    for candidate in rows:
        first = known.setdefault(step_key(candidate), candidate)
        unseen += first.values._replace(args=()) != candidate.values._replace(args=())
        if first.values.model_parallel != candidate.values.model_parallel:
            alike.add(candidate.values._replace(grad_accum=None))
    # Where the program gets nothing of the parallelism, no accumulation has it.
    seen = [
        each
        for each in known.values()
        if each.is_current or each.values._replace(grad_accum=None) not in alike
    ]
    return Candidates(tuple(seen), unseen + len(known) - len(seen))


def step_key(candidate: Candidate) -> str:
    """Return a text that candidates share whose steps are compiled from equal inputs."""
    inputs = fit_inputs(candidate.project, candidate.job) if candidate.job else None
    if candidate.job is None or inputs is None:
        return json.dumps(candidate.values)
    return inputs_id(fit_key(candidate.job), inputs)


def tried_flags(candidate: Candidate, choices: Choices) -> tuple[FlagValue | bool, ...]:
    """Return the value of each flag that is tried, as the program gets it; False for a flag that it does not get."""
    flags = flag_values(candidate.job.flags) if candidate.job else {}
    return tuple(flags.get(flag, False) for flag in choices.args)


def lines_of(candidates: Sequence[Candidate], choices: Choices) -> tuple[Line, ...]:
    """Return the candidates that can be compiled, in lines."""
    lines: dict[tuple[Any, ...], list[Candidate]] = {}
    for candidate in candidates:
        if candidate.job:
            rung = candidate.job.rung
            key = (rung.size, rung.batch_size, rung.model_parallel, tried_flags(candidate, choices))
            lines.setdefault(key, []).append(candidate)
    return tuple(Line(tuple(sorted(line, key=micro_batch))) for line in lines.values())


def micro_batch(candidate: Candidate) -> int:
    """Return the examples of one replica and micro-batch; 0 for a candidate that the plan refuses."""
    return int(candidate.job.rung.micro_batch) if candidate.job else 0


def _values(catalog: Catalog, job: Job, choices: Choices) -> Iterator[Values]:
    rung = job.rung
    args = [[(flag, text) for text in texts] for flag, texts in choices.args.items()]
    for size, batch, model_parallel, chosen in product(
        dict.fromkeys((rung.size, *choices.sizes)),
        dict.fromkeys((rung.batch_size, *choices.batch_size)),
        choices.model_parallel or (rung.model_parallel,),
        product(*args),
    ):
        for grad_accum in choices.grad_accum or _accumulations(
            catalog, rung, size, batch, model_parallel
        ):
            # A rung without accumulation has no flag for it, so 1 is the rung's own value.
            is_unset = rung.grad_accum is None and grad_accum == 1
            yield Values(size, batch, model_parallel, chosen, None if is_unset else grad_accum)


def _accumulations(
    catalog: Catalog, rung: Rung, size: str, batch: int, model_parallel: int
) -> Sequence[int | None]:
    """Return the accumulations to try without a list: powers of two, if the rung has one, and the rung's own."""
    slice_ = catalog.find(size)
    examples, rest = divmod(batch * model_parallel, slice_.devices) if slice_ else (0, 1)
    if rung.grad_accum is None or rest or not examples:
        return (rung.grad_accum,)
    powers = [1 << power for power in range(examples.bit_length()) if examples % (1 << power) == 0]
    return sorted({*powers, rung.grad_accum} if examples % rung.grad_accum == 0 else powers)


# The plan of a candidate.


def _planned(project: Project, catalog: Catalog, job: Job, values: Values) -> Candidate:
    rung = _rung_of_batch(project, catalog, job.rung, values.batch_size)
    document = candidate_document(project, job.environment.name, rung, values)
    changed, findings = parse_project(document)
    if changed is None or changed.broken:
        return Candidate(values, project, None, errors(findings)[0].message)
    selection = Selection((job.environment.name,), (values.size,))
    compiled = compile_project(changed, catalog, selection, findings)
    stopping = errors(compiled.findings)
    if not stopping:
        return Candidate(values, changed, compiled.jobs[0])
    refusals = [finding.message for finding in stopping if finding.id not in _OF_THE_PLACE]
    jobs = () if refusals else plan(changed, catalog, selection).jobs
    return Candidate(
        values, changed, jobs[0] if jobs else None, (refusals or [stopping[0].message])[0]
    )


def _rung_of_batch(project: Project, catalog: Catalog, rung: Rung, batch: int) -> Rung:
    """Return the rung with another batch, whose steps and rate follow by the rules of the spec."""
    tuned_on = catalog.find(project.training.tuned_on)
    if batch == rung.batch_size or tuned_on is None:
        return rung
    override = project.overrides.get(rung.size, NO_OVERRIDE)
    changed = override._replace(
        batch_size=batch, per_device_batch_size=None, learning_rate=None, steps=None
    )
    return make_rung(
        project._replace(overrides={**project.overrides, rung.size: changed}), tuned_on, rung.slice
    )


def candidate_document(project: Project, environment: str, rung: Rung, values: Values) -> Document:
    """Return the spec as if it had been tuned on the candidate's size, with the figures of the rung and its values."""
    document, size, training = project.document, values.size, project.training
    own: KeyPath = ("environments", environment)
    removed: list[KeyPath] = [("tune",), ("training", "per_device_batch_size"), (*own, "sizes")]
    removed += [("environments", name) for name in project.environments if name != environment]
    for section in (("overrides",), (*own, "overrides"), (*own, "zones")):
        node = document.node(section)
        removed += [(*section, other) for other in (node.keys if node else ()) if other != size]
    removed += [("overrides", size, key) for key in (*_RUNG_FIGURES, *training.steps)]
    changes: dict[KeyPath, Any] = {
        ("sizes",): f"[{size}]",
        ("training", "tuned_on"): size,
        ("training", "batch_size"): values.batch_size,
        ("training", "model_parallel"): values.model_parallel,
        ("training", "grad_accum"): values.grad_accum,
        ("training", "learning_rate"): rung.learning_rate,
        ("training", "train_steps"): rung.train_steps if training.train_steps else None,
    }
    changes |= {
        ("training", "steps", key): f"{{value: {rung.steps[key]}, scale: false}}"
        for key in training.steps
    } | {(*own, "overrides", size, "trainer", "args", flag): text for flag, text in values.args}
    replaced = [_change(path, str(text)) for path, text in changes.items() if text is not None]
    return replace_values(remove_values(document, removed), replaced)


def _change(path: KeyPath, text: str) -> Assignment:
    name = dotted(path)
    return Assignment(path, f"{name}={text}", len(name) + 1)


# The spec with the values of a candidate, as `tpucfg tune --write` leaves it.


class UnwritableError(Exception):
    """The spec cannot get the values of a candidate by edits of single values."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


def edited_spec(document: Document, catalog: Catalog, candidate: Candidate) -> str:
    """Return the text of a spec in which the candidate's size has its values; only the lines of these values change.

    Raises:
        UnwritableError: A value is not at one place, or the job would not be that of the candidate.
    """
    values, job = candidate.values, candidate.job
    project = parse_project(document).project
    environment = project.environments.get(job.environment.name) if project and job else None
    if (
        job is None
        or project is None
        or environment is None
        or values.size not in environment.sizes
    ):
        name = dotted(environment.sizes_path) if environment else "sizes"
        if candidate.problem:
            hint = (
                "search the sizes of the region by --sizes, or write "
                "the values into an environment elsewhere yourself"
            )
            raise UnwritableError(
                f"{values.size} is not in the ladder, and {candidate.problem}", hint
            )
        raise UnwritableError(
            f"{values.size} is not in the ladder", f"add {values.size} to {name}, and run it again"
        )
    selection = Selection((environment.name,), (values.size,))
    current = plan(project, catalog, selection).jobs[0]
    try:
        for path, text in _edits(project, candidate, job, current):
            document = set_value(document, path, text)
    except EditError as error:
        raise UnwritableError(str(error), "set its values yourself") from None
    edited, findings = parse_project(document)
    try:
        compiled = edited and compile_project(edited, catalog, selection, findings)
    except SelectionError as error:
        raise UnwritableError(str(error)) from None
    if edited is None or compiled is None or errors(compiled.findings):
        problem = errors(compiled.findings if compiled else findings)[0]
        raise UnwritableError(f"with these values, {problem.message}", problem.help)
    if step_key(candidate._replace(project=edited, job=compiled.jobs[0])) != step_key(candidate):
        raise UnwritableError(
            "another layer or an override of the spec decides one of the values",
            "set them yourself",
        )
    return document.text


def _edits(
    project: Project, candidate: Candidate, job: Job, current: Job
) -> Iterator[tuple[KeyPath, str]]:
    """Yield each value that differs: in `training` and `trainer.args` for the tuned size, else in its override."""
    values, rung, now = candidate.values, job.rung, current.rung
    is_tuned = values.size == project.training.tuned_on
    section: KeyPath = ("training",) if is_tuned else ("overrides", values.size)
    if rung.batch_size != now.batch_size and is_tuned and project.training.per_device_batch_size:
        yield (*section, "per_device_batch_size"), decimal_text(rung.per_device)
    elif rung.batch_size != now.batch_size:
        yield (*section, "batch_size"), str(rung.batch_size)
    if (rung.grad_accum or 1) != (now.grad_accum or 1):
        yield (*section, "grad_accum"), str(rung.grad_accum or 1)
    if rung.model_parallel != now.model_parallel:
        yield (*section, "model_parallel"), str(rung.model_parallel)
    place: KeyPath = ("trainer", "args") if is_tuned else (*section, "args")
    flags, flags_now = flag_values(job.flags), flag_values(current.flags)
    yield from (
        ((*place, flag), text)
        for flag, text in values.args
        if flags.get(flag) != flags_now.get(flag)
    )
