"""The command `tpucfg review`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tpucfg.cli.environment_files import parse_environment_files, read_environment_files, require_independent_files
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, USAGE, CommandExit
from tpucfg.cli.options import SPEC, format_option, require_choice
from tpucfg.fs import open_regular_file

if TYPE_CHECKING:
    from tpucfg.changes.previews import Preview
    from tpucfg.changes.programs import ResourceFiles
    from tpucfg.review.cautions import Verdict
    from tpucfg.review.review import RepositoryReview

_FAIL_ON: Final = ("destructive", "caution", "any", "none")


SpecsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--spec",
        metavar="FILE",
        help="A spec to review; repeatable. [default: every tpucfg.yaml that the change affects]",
        show_default=False,
    ),
]
BaseOption = Annotated[
    str, typer.Option("--base", metavar="REV", help="The revision to merge into.", show_default=False)
]
HeadOption = Annotated[
    str | None,
    typer.Option(
        "--head", metavar="REV", help="The revision to review. [default: the working tree]", show_default=False
    ),
]
PreviewOption = Annotated[
    list[str] | None,
    typer.Option(
        "--preview",
        metavar="[FOLDER/]ENV=FILE",
        help="The output of `pulumi preview --json` for an environment of the spec in FOLDER; repeatable.",
    ),
]
FitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fit",
        metavar="[FOLDER=]FILE",
        help="The results/fit.json that `tpucfg fit` wrote in a job of this run, for the spec in FOLDER; repeatable.",
    ),
]
ResourcesOption = Annotated[
    tuple[Path, Path] | None,
    typer.Option(
        "--resources",
        metavar="BASE HEAD",
        help="What `tpucfg infra --format json` wrote for both revisions, elsewhere: no program is started.",
        show_default=False,
    ),
]
RunProgramOption = Annotated[
    bool,
    typer.Option(
        "--run-program", help="Run the stack programs with --head too. Without it, the resources are not known then."
    ),
]
FormatOption = Annotated[str, format_option("markdown|json")]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="destructive|caution|any|none",
        help="Exit 3 if data or its protection is lost, if there is any caution, or if anything changes.",
    ),
]


def review(
    base: BaseOption,
    head: HeadOption = None,
    spec: SpecsOption = None,
    preview: PreviewOption = None,
    fit: FitOption = None,
    resources: ResourcesOption = None,
    run_program: RunProgramOption = False,
    format: FormatOption = "markdown",
    fail_on: FailOnOption = "none",
) -> None:
    """Print one comment on what a change does to the jobs and the infrastructure.

    Head is compared with the merge base of the two revisions, so later commits on base do not count as reverted.
    Changes to resources are found by running the stack program of both revisions, which needs no cloud, engine or
    credentials, or read from files that other jobs have written. With --head no program runs unless --run-program is
    given: a stranger's branch belongs in CI. If the spec of head has errors, the comment lists them and the status is
    1; it is also 1 if --fail-on cannot be decided.

    Without --spec, every tpucfg.yaml of the repository that the change affects is reviewed, in one comment.

    Example: tpucfg review --base origin/main > comment.md
    """
    from tpucfg.cli.environment_files import read_run_fits
    from tpucfg.cli.review_specs import review_specs
    from tpucfg.git.repository import RevisionError
    from tpucfg.git.snapshots import CompareRequest
    from tpucfg.review.build import GivenFiles, repository_statements
    from tpucfg.review.cautions import give_verdict
    from tpucfg.review.scope import find_review_scope

    require_choice(format, tuple(_FORMATS), "--format")
    require_choice(fail_on, _FAIL_ON, "--fail-on")
    if resources and run_program:
        raise CommandExit(USAGE, "--resources and --run-program exclude each other", "leave out --run-program")
    try:
        folder = (spec or [SPEC])[0].parent
        given = GivenFiles(
            _read_previews(preview or (), folder, head),
            read_run_fits(fit or (), folder, head),
            _read_resources(resources, folder, head) if resources else None,
            runs_programs=head is None or run_program,
        )
        request = CompareRequest(base, head, SPEC, with_program=True, from_merge_base=True)
        scope = find_review_scope(request, spec or ())
        # Before any program runs: where the system does not prevent it, a program could change these files.
        statements = repository_statements(scope.tree)
        given = given._replace(has_stack_elsewhere=scope.has_stack_elsewhere)
        result = review_specs(scope, given)._replace(statements=statements)
    except RevisionError as error:
        raise CommandExit(ERRORS, str(error), error.help) from None
    sys.stdout.write(_FORMATS[format](result))
    # Before an exit message on stderr, so that the two keep their order in a log.
    sys.stdout.flush()
    if result.is_broken:
        raise CommandExit(ERRORS, "the spec has errors", "list them with: tpucfg check")
    if fail_on != "none":
        _exit_with_verdict(give_verdict(result), fail_on)


def _exit_with_verdict(verdict: "Verdict", fail_on: str) -> None:
    """Raise CommandExit if the verdict is what --fail-on names, or if it cannot be decided."""
    has_failed = {
        "any": verdict.is_change,
        "caution": verdict.is_caution or verdict.is_destructive,
        "destructive": verdict.is_destructive,
    }
    if has_failed[fail_on]:
        raise CommandExit(DIFFERENT)
    if not verdict.is_known:
        message = f"some effects are unknown, so --fail-on {fail_on} cannot be decided"
        raise CommandExit(ERRORS, message, "fix the problem that the comment names")


def _read_previews(values: Sequence[str], folder: Path, head: str | None) -> "dict[str, Preview]":
    """Return the previews by the name before the equals sign.

    Args:
        values: the values of --preview.
        folder: a folder of the repository under review.
        head: the revision under review; None for the working tree.
    """
    from tpucfg.changes.previews import MAX_PREVIEW_BYTES, read_preview

    files = parse_environment_files(values, "--preview")
    # One byte more than the limit, so that the reader can detect a file that exceeds it.
    contents = read_environment_files(files, MAX_PREVIEW_BYTES + 1, "pulumi preview --json")
    require_independent_files(files, folder, head)
    # Only the file's name: its folder differs between machines, but equal reviews must have equal text.
    return {
        name: read_preview(name.rpartition("/")[2], files[name].name, content) for name, content in contents.items()
    }


def _read_resources(paths: tuple[Path, Path], folder: Path, head: str | None) -> "ResourceFiles":
    """Return what the stack programs of base and head declare.

    A file that is missing or cannot be read is no error: the job that writes it runs the change, and may fail.
    """
    from tpucfg.infra.resource_file import MAX_FILE_BYTES, ResourceFile, read_resource_file

    require_independent_files({path.name: path for path in paths}, folder, head)

    def read(path: Path) -> ResourceFile:
        try:
            with open_regular_file(path, follow_links=False) as file:
                # One byte more than the limit, so that the reader can detect a file that exceeds it.
                return read_resource_file(path.name, file.read(MAX_FILE_BYTES + 1))
        except OSError as error:
            return ResourceFile(path.name, problem=str(error.strerror))

    base, after = paths
    return read(base), read(after)


def _markdown(result: "RepositoryReview") -> str:
    from tpucfg.review.comment import comment

    return comment(result)


def _json(result: "RepositoryReview") -> str:
    from tpucfg.review.json_report import json_report

    return json_report(result)


_FORMATS: Final[Mapping[str, Callable[["RepositoryReview"], str]]] = {"markdown": _markdown, "json": _json}
