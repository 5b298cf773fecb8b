"""The command `tpucfg review`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, USAGE, CommandExit
from tpucfg.cli.options import SPEC, choice_option, format_option, option

if TYPE_CHECKING:
    from tpucfg.cli.review_files import ReviewFiles
    from tpucfg.review.cautions import Verdict
    from tpucfg.review.review import RepositoryReview
    from tpucfg.review.scope import ReviewScope

_FAIL_ON: Final = ("destructive", "caution", "any", "none")


SpecsOption = Annotated[
    list[Path] | None,
    option("--spec FILE", "A spec to review; repeatable. [default: every tpucfg.yaml that the change affects]"),
]
BaseOption = Annotated[str, option("--base REV", "The revision to merge into.")]
HeadOption = Annotated[str | None, option("--head REV", "The revision to review. [default: the working tree]")]
PreviewOption = Annotated[
    list[str] | None,
    option(
        "--preview [FOLDER/]ENV=FILE",
        "The output of `pulumi preview --json` for an environment of the spec in FOLDER; repeatable.",
    ),
]
FitOption = Annotated[
    list[str] | None,
    option(
        "--fit [FOLDER=]FILE",
        "The results/fit.json that `tpucfg fit` wrote in a job of this run, for the spec in FOLDER; repeatable.",
    ),
]
ResourcesOption = Annotated[
    tuple[Path, Path] | None,
    option(
        "--resources BASE HEAD",
        "What `tpucfg infra --format json` wrote for both revisions, elsewhere: no program is started.",
    ),
]
RunProgramOption = Annotated[
    bool,
    option("--run-program", "Run the stack programs with --head too. Without it, the resources are not known then."),
]
FormatOption = Annotated[str, format_option("markdown|json")]
FailOnOption = Annotated[
    str,
    choice_option(
        f"--fail-on {'|'.join(_FAIL_ON)}",
        _FAIL_ON,
        "Exit 3 if data or its protection is lost, if there is any caution, or if anything changes.",
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
    from tpucfg.cli.review_files import read_review_files
    from tpucfg.git.snapshots import CompareRequest
    from tpucfg.review.build import repository_statements
    from tpucfg.review.cautions import give_verdict
    from tpucfg.review.scope import find_review_scope

    if resources and run_program:
        raise CommandExit(USAGE, "--resources and --run-program exclude each other", "leave out --run-program")
    folder = (spec or [SPEC])[0].parent
    files = read_review_files(preview or (), fit or (), resources, folder, head)
    request = CompareRequest(base, head, SPEC, with_program=True, from_merge_base=True)
    scope = find_review_scope(request, spec or ())
    files.require_folders(scope)
    # Before any program runs: where the system does not prevent it, a program could change these files.
    statements = repository_statements(scope.tree)
    result = _review_specs(scope, files, runs_programs=head is None or run_program)
    result = result._replace(statements=statements)
    sys.stdout.write(_present(result, format))
    # Before an exit message on stderr, so that the two keep their order in a log.
    sys.stdout.flush()
    if result.is_broken:
        raise CommandExit(ERRORS, "the spec has errors", "list them with: tpucfg check")
    if fail_on != "none":
        _exit_with_verdict(give_verdict(result), fail_on)


def _review_specs(scope: "ReviewScope", files: "ReviewFiles", *, runs_programs: bool) -> "RepositoryReview":
    """Review each spec; one that cannot be read does not prevent the review of the others.

    Raises:
        RevisionError: The only spec cannot be read.
    """
    from tpucfg.cli.load_spec import progress
    from tpucfg.git.repository import RevisionError
    from tpucfg.review.build import review_spec
    from tpucfg.review.review import RepositoryReview, SpecFailure
    from tpucfg.review.scope import without_renamed_specs

    is_only = len(scope.requests) == 1
    reviews, failures = [], []
    with progress("reviewing specs", len(scope.requests)) as advance:
        for path, request in scope.requests.items():
            given = files.of_spec(path, is_only=is_only)
            has_stack = scope.has_stack_elsewhere
            given = given._replace(runs_programs=runs_programs, has_stack_elsewhere=has_stack)
            try:
                reviews.append(review_spec(request, given))
            except RevisionError as error:
                if is_only:
                    raise
                failures.append(SpecFailure(path.as_posix(), str(error), error.help))
            advance()
    others, is_of_repository = tuple(map(str, scope.others)), scope.is_of_repository
    return RepositoryReview(without_renamed_specs(reviews), tuple(failures), others, is_of_repository=is_of_repository)


def _present(result: "RepositoryReview", format: str) -> str:
    if format == "json":
        from tpucfg.review.json_report import json_report

        return json_report(result)
    from tpucfg.review.comment import comment

    return comment(result)


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
