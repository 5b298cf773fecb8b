"""The spec with the values of a candidate, as `tpucfg tune --write` leaves it."""

from collections.abc import Iterator

from tpucfg.catalog import Catalog
from tpucfg.findings import errors
from tpucfg.fit.tune_candidates import Candidate, step_key
from tpucfg.plan import Job, Selection, SelectionError, plan
from tpucfg.plan.program import flag_values
from tpucfg.plan.scaling import decimal_text
from tpucfg.render.pipeline import compile_project
from tpucfg.spec import Project
from tpucfg.spec.parse import parse_project
from tpucfg.text_format import dotted
from tpucfg.yamldoc import Document, KeyPath
from tpucfg.yamldoc.edited_text import EditError, set_value


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
    if job is None or project is None or environment is None or values.size not in environment.sizes:
        name = dotted(environment.sizes_path) if environment else "sizes"
        if candidate.problem:
            hint = (
                "search the sizes of the region by --sizes, or write the values into an environment elsewhere yourself"
            )
            raise UnwritableError(f"{values.size} is not in the ladder, and {candidate.problem}", hint)
        raise UnwritableError(f"{values.size} is not in the ladder", f"add {values.size} to {name}, and run it again")
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
        raise UnwritableError("another layer or an override of the spec decides one of the values", "set them yourself")
    return document.text


def _edits(project: Project, candidate: Candidate, job: Job, current: Job) -> Iterator[tuple[KeyPath, str]]:
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
    yield from (((*place, flag), text) for flag, text in values.args if flags.get(flag) != flags_now.get(flag))
