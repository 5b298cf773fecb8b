"""The command `tpucfg review`."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tpucfg.cli.diff import compiled_revisions_or_exit
from tpucfg.cli.exit_codes import DIFFERENT, ERRORS, USAGE, CommandExit
from tpucfg.cli.options import SPEC, SpecOption, format_option, require_choice
from tpucfg.git.snapshots import CompareRequest
from tpucfg.plan import Selection

if TYPE_CHECKING:
    from tpucfg.review.preview.reader import Preview
    from tpucfg.review.review import Review

# As in the schema of the spec: the name is part of file names and of the comment.
_ENVIRONMENT_NAME: Final = r"[a-z]([-a-z0-9]{0,28}[a-z0-9])?"
_FAIL_ON: Final = ("destructive", "any", "none")


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
        metavar="ENV=FILE",
        help="The output of `pulumi preview --json` for an environment; repeatable.",
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
    spec: SpecOption = SPEC,
    preview: PreviewOption = None,
    format: FormatOption = "markdown",
    fail_on: FailOnOption = "none",
) -> None:
    """Print one comment on what a change does to the jobs and the infrastructure.

    Head is compared with its merge base with base, so that later commits on base do not count as reverted.
    Changes to resources are found by running the stack program of both revisions, without cloud, engine or credentials,
    or read from a preview by Pulumi. If the spec of head has errors, the comment lists them and the status is 1; it is
    also 1 if --fail-on destructive cannot be decided.

    Example: tpucfg review --base origin/main > comment.md
    """
    from tpucfg.review.build import build_review

    require_choice(format, tuple(_FORMATS), "--format")
    require_choice(fail_on, _FAIL_ON, "--fail-on")
    previews = _read_previews(_preview_files(preview or []))
    request = CompareRequest(base, head, spec, with_program=True, from_merge_base=True)
    with compiled_revisions_or_exit(request, Selection()) as (before, after):
        result = build_review(before, after, previews)
    sys.stdout.write(_FORMATS[format](result))
    # Before an exit message on stderr, so that the two keep their order in a log.
    sys.stdout.flush()
    _exit_with_status(result, fail_on)


def _exit_with_status(result: "Review", fail_on: str) -> None:
    """Raise CommandExit for a status other than 0."""
    if result.after.is_broken:
        raise CommandExit(ERRORS, "the spec has errors", "list them with: tpucfg check")
    if fail_on == "any" and result.is_change:
        raise CommandExit(DIFFERENT)
    if fail_on == "destructive":
        if result.is_destructive:
            raise CommandExit(DIFFERENT)
        if not result.is_known:
            message = "some changes to resources are unknown, so --fail-on destructive cannot be decided"
            raise CommandExit(ERRORS, message, "fix the problem that the comment names")


def _preview_files(options: Sequence[str]) -> dict[str, Path]:
    """Return the file of each environment from the values of --preview."""
    files: dict[str, Path] = {}
    for option in options:
        name, _, file = option.partition("=")
        if not name or not file:
            raise CommandExit(USAGE, f"--preview {option}: it takes ENV=FILE", "for example: --preview dev=dev.jsonl")
        if not re.fullmatch(_ENVIRONMENT_NAME, name):
            raise CommandExit(USAGE, f"--preview {name}=…: {name} is not a valid name of an environment")
        if name in files:
            raise CommandExit(USAGE, f"--preview {name}=… is given twice")
        files[name] = Path(file)
    return files


def _read_previews(files: Mapping[str, Path]) -> "dict[str, Preview]":
    if not files:
        return {}
    from tpucfg.review.build import read_previews

    try:
        return read_previews(files)
    except OSError as error:
        message = f"{error.filename}: {error.strerror or error}"
        raise CommandExit(ERRORS, message, "write it with: pulumi preview --json") from None


def _markdown(result: "Review") -> str:
    from tpucfg.review.markdown.comment import comment

    return comment(result)


def _json(result: "Review") -> str:
    from tpucfg.review.json_report import json_report

    return json_report(result) + "\n"


_FORMATS: Final[Mapping[str, Callable[["Review"], str]]] = {"markdown": _markdown, "json": _json}
