"""The command `tpucfg review`."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from tpucfg.cli.environment_files import parse_environment_files, read_environment_files, require_independent_files
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, CommandExit
from tpucfg.cli.options import SPEC, format_option, require_choice

if TYPE_CHECKING:
    from tpucfg.review.cloud_files import CloudFiles
    from tpucfg.review.review import RepositoryReview

_POLICY_COMMAND: Final = "gcloud storage buckets get-iam-policy --format=json"
_FAIL_ON: Final = ("destructive", "any", "none")
_Read = TypeVar("_Read")
"""The content of a file: a preview, or a policy."""


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
PolicyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="[FOLDER/]ENV=FILE",
        help="The output of `gcloud storage buckets get-iam-policy --format=json` for the bucket of an environment; "
        "repeatable.",
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
SinceOption = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="REV",
        help="The commit that was reviewed before, to name what is new in one line.",
        show_default=False,
    ),
]
FormatOption = Annotated[str, format_option("markdown|json")]
FailOnOption = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="destructive|any|none",
        help="Exit 3 if data or its protection is lost, or if anything changes.",
    ),
]


def review(
    base: BaseOption,
    head: HeadOption = None,
    spec: SpecsOption = None,
    preview: PreviewOption = None,
    policy: PolicyOption = None,
    fit: FitOption = None,
    since: SinceOption = "",
    format: FormatOption = "markdown",
    fail_on: FailOnOption = "none",
) -> None:
    """Print one comment on what a change does to the jobs and the infrastructure.

    Head is compared with the merge base of the two revisions, so later commits on base do not count as reverted.
    Changes to resources are found by running the stack program of both revisions, which needs no cloud, engine or
    credentials, or read from a preview by Pulumi. If the spec of head has errors, the comment lists them and the status
    is 1; it is also 1 if --fail-on cannot be decided.

    Without --spec, every tpucfg.yaml of the repository that the change affects is reviewed, in one comment.

    Example: tpucfg review --base origin/main > comment.md
    """
    from tpucfg.cli.environment_files import read_run_fits
    from tpucfg.cli.review_specs import review_earlier, review_specs
    from tpucfg.git.repository import RevisionError
    from tpucfg.git.snapshots import CompareRequest
    from tpucfg.review.build import repository_statements
    from tpucfg.review.scope import find_review_scope

    require_choice(format, tuple(_FORMATS), "--format")
    require_choice(fail_on, _FAIL_ON, "--fail-on")
    try:
        folder = (spec or [SPEC])[0].parent
        cloud = _read_cloud_files(preview or (), policy or (), folder, head)
        cloud = cloud._replace(fits=read_run_fits(fit or (), folder, head))
        request = CompareRequest(base, head, SPEC, with_program=True, from_merge_base=True)
        scope = find_review_scope(request, spec or ())
        # Before any program runs: where the system does not prevent it, a program could change these files.
        statements = repository_statements(scope.tree)
        result = review_specs(scope, cloud)._replace(statements=statements)
        if since:
            earlier = review_earlier(request, spec or (), since, result, is_plain=not any(cloud))
            result = result._replace(earlier=earlier)
    except RevisionError as error:
        raise CommandExit(ERRORS, str(error), error.help) from None
    sys.stdout.write(_FORMATS[format](result))
    # Before an exit message on stderr, so that the two keep their order in a log.
    sys.stdout.flush()
    _exit_with_status(result, fail_on)


def _exit_with_status(result: "RepositoryReview", fail_on: str) -> None:
    """Raise CommandExit for a status other than 0."""
    if result.is_broken:
        raise CommandExit(ERRORS, "the spec has errors", "list them with: tpucfg check")
    if fail_on == "any" and result.is_change:
        raise CommandExit(DIFFERENT)
    if fail_on == "destructive" and result.is_destructive:
        raise CommandExit(DIFFERENT)
    if fail_on != "none" and not result.is_known:
        message = f"some changes to resources are unknown, so --fail-on {fail_on} cannot be decided"
        raise CommandExit(ERRORS, message, "fix the problem that the comment names")


def _read_cloud_files(previews: Sequence[str], policies: Sequence[str], folder: Path, head: str | None) -> "CloudFiles":
    """Return the files of --preview and --policy, by the name before the equals sign.

    Args:
        previews: the values of --preview.
        policies: the values of --policy.
        folder: a folder of the repository under review.
        head: the revision under review; None for the working tree.
    """
    from tpucfg.review.cloud_files import CloudFiles
    from tpucfg.review.preview.policy import MAX_POLICY_BYTES, read_policy
    from tpucfg.review.preview.reader import MAX_PREVIEW_BYTES, read_preview

    def read(
        values: Sequence[str], option: str, max_bytes: int, command: str, parse: Callable[[str, str, bytes], _Read]
    ) -> dict[str, _Read]:
        files = parse_environment_files(values, option)
        # One byte more than the limit, so that the reader can detect a file that exceeds it.
        contents = read_environment_files(files, max_bytes + 1, command)
        require_independent_files(files, folder, head)
        # Only the file's name: its folder differs between machines, but equal reviews must have equal text.
        return {name: parse(name.rpartition("/")[2], files[name].name, content) for name, content in contents.items()}

    return CloudFiles(
        read(previews, "--preview", MAX_PREVIEW_BYTES, "pulumi preview --json", read_preview),
        read(policies, "--policy", MAX_POLICY_BYTES, _POLICY_COMMAND, read_policy),
    )


def _markdown(result: "RepositoryReview") -> str:
    from tpucfg.review.markdown.repository_comment import repository_comment

    return repository_comment(result)


def _json(result: "RepositoryReview") -> str:
    from tpucfg.review.json_report import json_report

    return json_report(result)


_FORMATS: Final[Mapping[str, Callable[["RepositoryReview"], str]]] = {"markdown": _markdown, "json": _json}
