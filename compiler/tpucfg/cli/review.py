"""`tpucfg review`."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tpucfg.cli.diff import compiled_sides
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, USAGE, CommandExit
from tpucfg.cli.options import SPEC, SpecOption, require_choice
from tpucfg.git.snapshots import CompareRequest as Compared
from tpucfg.plan import Selection

if TYPE_CHECKING:
    from tpucfg.diff.compiled_revisions import CompiledRevision
    from tpucfg.findings import Finding
    from tpucfg.infra.isolated_runner import ProgramRequest, ProgramResults
    from tpucfg.infra.resources import EnvironmentResources
    from tpucfg.review.build import Declared, Programs
    from tpucfg.review.changes.stack_changes import StackSetup
    from tpucfg.review.preview.reader import Preview
    from tpucfg.review.review import Review

_NAME: Final = r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?"
_FAIL_ON: Final = ("destructive", "any", "none")


def review(
    base: Annotated[
        str, typer.Option("--base", metavar="REV", help="The revision that the change goes to.", show_default=False)
    ],
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="REV", help="The change. [default: the working tree]", show_default=False),
    ] = None,
    spec: SpecOption = SPEC,
    preview: Annotated[
        list[str] | None,
        typer.Option(
            "--preview",
            metavar="ENV=FILE",
            help="What `pulumi preview --json` printed for an environment; may be repeated.",
        ),
    ] = None,
    format: Annotated[str, typer.Option("--format", metavar="markdown|json", help="How to print.")] = "markdown",
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="destructive|any|none",
            help="Exit 3 where data or its protection goes, or where anything changes.",
        ),
    ] = "none",
) -> None:
    """Print one comment that says what a change does to the jobs and the infrastructure, and what that means.

    It is compared with the commit where head left base, so that what came to base since is not taken for taken back.
    Resources come from the stack program of each side, which is run without cloud, engine or credentials, or from
    Pulumi's own preview where one is given. A spec that does not hold is told in the comment, and the status is 1;
    so it is where --fail-on destructive cannot be answered.

    Example: tpucfg review --base origin/main > comment.md
    """
    require_choice(format, tuple(_FORMATS), "--format")
    require_choice(fail_on, _FAIL_ON, "--fail-on")
    previews = _previews(preview or [])
    with compiled_sides(Compared(base, head, spec, whole=True, since_parting=True), Selection()) as (before, after):
        made = _review(before, after, previews)
    sys.stdout.write(_FORMATS[format](made))
    sys.stdout.flush()
    _end(made, fail_on)


def _end(made: "Review", fail_on: str) -> None:
    """The status that the review and --fail-on ask for."""
    if made.after.is_broken:
        raise CommandExit(ERRORS, "the spec does not hold", "tpucfg check")
    if fail_on == "any" and made.is_change:
        raise CommandExit(DIFFERENT)
    if fail_on == "destructive":
        if made.is_destructive:
            raise CommandExit(DIFFERENT)
        if not made.is_known:
            why = "what happens to the resources is not known, so whether anything is destroyed is not either"
            raise CommandExit(ERRORS, why, "the comment says why")


def _review(before: "CompiledRevision", after: "CompiledRevision", previews: Mapping[str, "Preview"]) -> "Review":
    from tpucfg.review.build import Programs, build_review

    whole = [name for name, told in previews.items() if told.failure is None]
    programs = Programs({}, {})
    if not after.is_broken:
        programs = _with_stacks(_programs(before, after, whole), before, after)
    return build_review(before, after, programs, previews, _judged)


def _judged(made: "EnvironmentResources", side: "CompiledRevision") -> "tuple[Finding, ...]":
    from tpucfg.infra.resource_rules import resource_findings

    return resource_findings(made, side.project) if side.project else ()


def _programs(before: "CompiledRevision", after: "CompiledRevision", previewed: Sequence[str]) -> "Programs":
    """What the stack programs declare for every environment that head still has and no whole preview tells of."""
    from tpucfg.infra.isolated_runner import run_isolated
    from tpucfg.infra.stack_program import PackagesMissingError
    from tpucfg.review.build import Programs

    names = [name for name in (after.project.environments if after.project else ()) if name not in previewed]
    sides = [made for made in (before, after) if made.project]
    try:
        found = run_isolated([_asked(made, names) for made in sides])
    except PackagesMissingError as error:
        return Programs({}, {}, str(error))
    told = {made.snapshot: _declared(made, answers) for made, answers in zip(sides, found, strict=True)}
    return Programs(told.get(before.snapshot, {}), told.get(after.snapshot, {}))


def _with_stacks(programs: "Programs", before: "CompiledRevision", after: "CompiledRevision") -> "Programs":
    """With what becomes of the programs themselves, where both sides have a spec, be it one that does not hold."""
    from tpucfg.review.changes.stack_changes import stack_statements

    if not (before.snapshot.exists and after.snapshot.exists):
        return programs
    names = [*after.project.environments] if after.project else []
    old, new = _stacks(before, names), _stacks(after, names)
    uses_bundled_program = tuple(
        made.snapshot.title for made, it in ((before, old), (after, new)) if not it.program.is_own
    )
    return programs._replace(remarks=tuple(stack_statements(old, new)), uses_bundled_program=uses_bundled_program)


def _stacks(made: "CompiledRevision", names: Sequence[str]) -> "StackSetup":
    from tpucfg.infra.stack_files import other_spec
    from tpucfg.infra.stack_program import find_program
    from tpucfg.review.changes.stack_changes import StackSetup

    others = {name: other for name in names if (other := other_spec(made.snapshot.spec, name))}
    return StackSetup(find_program(made.snapshot.spec), others)


def _asked(made: "CompiledRevision", names: Sequence[str]) -> "ProgramRequest":
    from tpucfg.infra.isolated_runner import ProgramRequest

    assert made.project is not None  # noqa: S101 - only sides that hold are asked
    return ProgramRequest(
        made.snapshot.spec, made.project, tuple(name for name in names if name in made.project.environments)
    )


def _declared(made: "CompiledRevision", answers: "ProgramResults") -> "dict[str, Declared]":
    from tpucfg.infra.isolated_runner import ProgramFailure
    from tpucfg.review.review import Problem

    found: dict[str, Declared] = {}
    for name, answer in answers.items():
        if isinstance(answer, ProgramFailure):
            first, *rest = made.snapshot.said(answer.reason).splitlines() or [""]
            left = f"{made.snapshot.left_out:,} files of this side were too large or too many to be copied"
            found[name] = Problem(first, (*rest, *([left] if made.snapshot.left_out else [])))
        else:
            found[name] = answer
    return found


def _previews(given: Sequence[str]) -> "dict[str, Preview]":
    from tpucfg.fs import open_regular_file
    from tpucfg.review.preview.reader import MAX_PREVIEW_BYTES, read_preview

    found = {}
    for one in given:
        name, _, file = one.partition("=")
        if not name or not file:
            raise CommandExit(USAGE, f"--preview {one}: it takes ENV=FILE, such as dev=dev.jsonl")
        if not re.fullmatch(_NAME, name):
            raise CommandExit(USAGE, f"--preview {name}=…: no environment can be called that")
        if name in found:
            raise CommandExit(USAGE, f"--preview {name}=… is given twice")
        try:
            with open_regular_file(Path(file)) as content:
                # Only its name: where the file lies is no part of the review.
                found[name] = read_preview(name, Path(file).name, content.read(MAX_PREVIEW_BYTES + 1))
        except OSError as error:
            raise CommandExit(
                ERRORS, f"{file}: {error.strerror or error}", "write it with: pulumi preview --json"
            ) from None
    return found


def _markdown(made: "Review") -> str:
    from tpucfg.review.markdown.comment import comment

    return comment(made)


def _json(made: "Review") -> str:
    from tpucfg.review.json_report import json_text

    return json_text(made) + "\n"


_FORMATS: Final[Mapping[str, Callable[["Review"], str]]] = {"markdown": _markdown, "json": _json}
