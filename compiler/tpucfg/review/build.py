"""The parts of a review: for each environment its preview, or else what the programs of both sides declare."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from tpucfg.diff.change import Difference
from tpucfg.diff.compiled_revisions import CompiledRevision
from tpucfg.diff.config_diff import config_difference
from tpucfg.findings import Finding
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.review.changes.impact import compute_impact, impact_of_broken_spec
from tpucfg.review.changes.program_diff import program_changes, redacted_resources
from tpucfg.review.changes.statements import LocatedStatement
from tpucfg.review.preview.reader import Preview
from tpucfg.review.review import Part, Problem, Review, Source

Declared = EnvironmentResources | Problem
Judge = Callable[[EnvironmentResources, CompiledRevision], tuple[Finding, ...]]


class Programs(NamedTuple):
    """What the stack programs declare, by environment; what a side does not have is missing."""

    before: Mapping[str, Declared]
    after: Mapping[str, Declared]
    missing: str = ""
    """What is not installed to run them with."""
    remarks: tuple[LocatedStatement, ...] = ()
    """What becomes of the programs themselves."""
    uses_bundled_program: tuple[str, ...] = ()
    """The sides that have no program of their own, so that the package's was run."""


def build_review(
    before: CompiledRevision, after: CompiledRevision, programs: Programs, previews: Mapping[str, Preview], judge: Judge
) -> Review:
    """The review of two sides."""
    whole = not (before.is_broken or after.is_broken)
    found = config_difference(before.configs, after.configs) if whole else Difference((), (), (), ())
    told = compute_impact(before, after) if whole else impact_of_broken_spec(before, after)
    told = told._replace(statements=(*programs.remarks, *told.statements))
    names = sorted({*programs.before, *programs.after, *previews, *_environments(after)})
    there = {*_environments(before), *_environments(after)}
    idle = {name: why for name in previews if whole and (why := _not_needed(previews[name], there, after))}
    parts = []
    for name in names:
        if name in idle:
            continue
        if name in previews:
            parts.append(_with_preview(previews[name], before, after, programs, judge))
        elif name in programs.after:
            parts.append(_programmed(name, before, after, programs, judge))
        elif name in _environments(after):
            parts.append(Part(name, "none"))
    lacking = programs.missing if any(part.source == "none" for part in parts) else ""
    return Review(
        before,
        after,
        found,
        told,
        tuple(parts),
        lacking,
        programs.uses_bundled_program,
        tuple(idle[name] for name in sorted(idle)),
    )


def _not_needed(preview: Preview, there: Collection[str], after: CompiledRevision) -> str:
    """Why a preview tells nothing of this change; empty where it does."""
    name = preview.environment
    if name not in there:
        return f"The preview of {name} is not shown: neither side has an environment of that name."
    if preview.failure and name not in _environments(after):
        return f"The preview of {name} failed, and this change takes that environment out of the spec."
    return ""


def _environments(made: CompiledRevision) -> Mapping[str, object]:
    return made.project.environments if made.project else {}


def _with_preview(
    preview: Preview, before: CompiledRevision, after: CompiledRevision, programs: Programs, judge: Judge
) -> Part:
    """The preview; where it failed, the engine stopped at its first refusal, and the program tells the whole."""
    part, name = _previewed(preview), preview.environment
    if preview.failure is None or name not in programs.after:
        return part
    instead = _programmed(name, before, after, programs, judge)
    if instead.problem:
        return part
    if preview.has_no_stack:
        return instead._replace(has_no_stack=True)
    return instead._replace(problem=part.problem, violations=part.violations, warnings=part.warnings)


def _previewed(preview: Preview) -> Part:
    failure = preview.failure
    problem = Problem(f"{failure.reason} ({failure.location})", failure.lines) if failure else None
    return Part(
        preview.environment,
        "preview",
        preview.changes,
        problem,
        preview.violations,
        preview.warnings,
    )


def _programmed(name: str, before: CompiledRevision, after: CompiledRevision, programs: Programs, judge: Judge) -> Part:
    """What both programs declare, and where the base does not hold what that of head does."""
    old, new = programs.before.get(name), programs.after[name]
    source: Source = "head" if before.is_broken else "program"
    for side, declared in ((before, old), (after, new)):
        if isinstance(declared, Problem):
            return Part(name, source, problem=declared._replace(reason=f"{declared.reason} ({side.snapshot.title})"))
    base = old if isinstance(old, EnvironmentResources) else None
    head = new if isinstance(new, EnvironmentResources) else None
    known = {(it.id, it.message) for it in judge(base, before)} if base else set[tuple[str, str]]()
    found = judge(head, after) if head else ()
    wrong = tuple(it for it in found if it.level != "note" and (it.id, it.message) not in known)
    if source == "head":
        return Part(name, source, new=wrong, declared=redacted_resources(head) if head else ())
    return Part(name, source, program_changes(base, head), new=wrong, is_first=not (base and base.resources))
