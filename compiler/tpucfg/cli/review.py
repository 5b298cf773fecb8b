"""The command `tpucfg review`."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from tpucfg.cli.exit_codes import DIFFERENT, CommandExit
from tpucfg.cli.options import SPEC, choice_option, environment_name_form, format_option, option
from tpucfg.fs import open_regular_file
from tpucfg.refusal import RefusalError, UsageError
from tpucfg.text_format import printable

if TYPE_CHECKING:
    from tpucfg.changes.fits import RunFits
    from tpucfg.changes.previews import Preview
    from tpucfg.changes.programs import ResourceFiles
    from tpucfg.git.snapshots import CompareRequest
    from tpucfg.infra.resources import ResourceFile
    from tpucfg.review.build import GivenFiles, ReviewScope
    from tpucfg.review.cautions import Verdict
    from tpucfg.review.review import RepositoryReview

_FAIL_ON: Final = ("destructive", "caution", "any", "none")


def review(
    base: Annotated[str, option("--base REV", "The revision to merge into.")],
    head: Annotated[
        str | None, option("--head REV", "The revision to review. [default: the working tree]")
    ] = None,
    spec: Annotated[
        list[Path] | None, option("--spec FILE", "A spec; repeatable. [default: all affected ones]")
    ] = None,
    preview: Annotated[
        list[str] | None,
        option(
            "--preview [FOLDER/]ENV=FILE",
            "A `pulumi preview --json`, by the spec's folder and environment; repeatable.",
        ),
    ] = None,
    fit: Annotated[
        list[str] | None,
        option(
            "--fit [FOLDER=]FILE",
            "The fit.json that a job of this run wrote, by the spec's folder; repeatable.",
        ),
    ] = None,
    resources: Annotated[
        tuple[Path, Path] | None,
        option(
            "--resources BASE HEAD",
            "What `tpucfg infra --format json` wrote for both: no program is started.",
        ),
    ] = None,
    run_program: Annotated[
        bool, option("--run-program", "Run the stack programs with --head too.")
    ] = False,
    format: Annotated[str, format_option("markdown|json")] = "markdown",
    fail_on: Annotated[
        str,
        choice_option(
            f"--fail-on {'|'.join(_FAIL_ON)}",
            _FAIL_ON,
            "Exit 3 if data or its protection is lost, if there is any caution, or if anything changes.",
        ),
    ] = "none",
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
    from tpucfg.git.snapshots import CompareRequest
    from tpucfg.review.build import find_review_scope, repository_changes
    from tpucfg.review.cautions import give_verdict
    from tpucfg.review.comment import check_command

    if resources and run_program:
        raise UsageError(
            "--resources and --run-program exclude each other", "leave out --run-program"
        )
    request = CompareRequest(base, head, SPEC, with_program=True, from_merge_base=True)
    request = request._replace(repository=request.open_repository(*(spec or ())))
    files = read_review_files(preview or (), fit or (), resources, request)
    scope = find_review_scope(request, spec or ())
    files.require_folders(scope)
    # Before any program runs: where the system does not prevent it, a program could change these files.
    statements, unjudged = repository_changes(scope)
    result = _review_specs(scope, files, runs_programs=head is None or run_program)
    result = result._replace(statements=statements, unjudged=unjudged)
    sys.stdout.write(_present(result, format))
    # Before an exit message on stderr, so that the two keep their order in a log.
    sys.stdout.flush()
    if result.is_broken:
        broken = [review.after for review in result.reviews if review.after.is_broken]
        hint = (
            f"list them with: {check_command(*broken)}" if broken else "the comment has the reason"
        )
        raise RefusalError("the spec has errors", hint)
    if fail_on != "none":
        _exit_with_verdict(give_verdict(result), fail_on)


def _review_specs(
    scope: "ReviewScope", files: "ReviewFiles", *, runs_programs: bool
) -> "RepositoryReview":
    """Review each spec; one that cannot be read does not prevent the review of the others.

    Raises:
        RevisionError: The only spec does not exist, or its repository cannot be read.
    """
    from tpucfg.git.repository import RevisionError, UnreadableSpecError
    from tpucfg.review.build import review_spec, without_renamed_specs
    from tpucfg.review.review import RepositoryReview, SpecFailure

    is_only = len(scope.requests) == 1
    reviews, failures = [], []
    for path, request in scope.requests.items():
        given = files.of_spec(path, is_only=is_only)
        has_stack = scope.has_stack_elsewhere
        given = given._replace(runs_programs=runs_programs, has_stack_elsewhere=has_stack)
        try:
            reviews.append(review_spec(request, given))
        except RevisionError as error:
            if is_only and not isinstance(error, UnreadableSpecError):
                raise
            failures.append(SpecFailure(path.as_posix(), str(error), error.help))
    others, is_of_repository = tuple(map(str, scope.others)), scope.is_of_repository
    return RepositoryReview(
        without_renamed_specs(reviews), tuple(failures), others, is_of_repository=is_of_repository
    )


def _present(result: "RepositoryReview", format: str) -> str:
    if format == "json":
        from tpucfg.review.json_report import json_report

        return json_report(result)
    from tpucfg.review.comment import comment

    return comment(result)


def _exit_with_verdict(verdict: "Verdict", fail_on: str) -> None:
    """Raise CommandExit if the verdict is what --fail-on names, or if it cannot be decided."""
    is_caution = verdict.is_caution or verdict.is_destructive
    if {"any": verdict.is_change, "caution": is_caution, "destructive": verdict.is_destructive}[
        fail_on
    ]:
        raise CommandExit(DIFFERENT)
    if not verdict.is_known:
        message = f"some effects are unknown, so --fail-on {fail_on} cannot be decided"
        raise RefusalError(message, "fix the problem that the comment names")


# The files that options name: previews, fits and resources that other jobs have written.


_ONLY: Final = ""
_PREVIEW: Final = "--preview"
_FIT: Final = "--fit"
_FORMS: Final = {
    _PREVIEW: ("ENV=FILE", "dev=dev.jsonl"),
    _FIT: ("FILE or FOLDER=FILE", "projects/mnist=fit.json"),
}
"""The form of an option's values, and an example."""
_Owner = tuple[str, str]
"""The folder of a file's spec, empty for the only spec or the one at the root, and the environment of a preview."""


class ReviewFiles(NamedTuple):
    """The files of all specs."""

    previews: "Mapping[_Owner, Preview]"
    fits: "Mapping[_Owner, RunFits]"
    resources: "ResourceFiles | None"
    """The declarations of the stack programs of base and head; None to run them."""

    def of_spec(self, spec: PurePosixPath, *, is_only: bool) -> "GivenFiles":
        """Return the files of a spec."""
        from tpucfg.review.build import GivenFiles

        folder = spec.parent.as_posix()
        folders = (folder, _ONLY) if is_only or folder == "." else (folder,)
        previews = {
            environment: preview
            for (owner, environment), preview in self.previews.items()
            if owner in folders
        }
        fits = next((self.fits[name, ""] for name in folders if (name, "") in self.fits), None)
        return GivenFiles(previews, fits, self.resources)

    def require_folders(self, scope: "ReviewScope") -> None:
        """Raise UsageError for a file that could be of several specs, and for a fit of a folder without a spec."""
        folders = sorted({path.parent.as_posix() for path in scope.requests})
        known = {_ONLY, *folders, *(path.parent.as_posix() for path in scope.others)}
        if unknown := next(
            (owner for owner, _ in (*self.previews, *self.fits) if owner not in known), None
        ):
            message = f"the folder {printable(unknown)} of a file has no spec in either revision"
            raise UsageError(message, "give the folder relative to the root of the repository")
        if len(folders) <= 1 or "." in folders:
            return
        for name, owners in ((_PREVIEW, self.previews), (_FIT, self.fits)):
            for environment in (environment for owner, environment in owners if owner == _ONLY):
                message = f"{name}: {len(folders)} folders with specs are reviewed, and each could have this file"
                place = "/".join(filter(None, (folders[0], environment)))
                raise UsageError(message, f"name the spec's folder: {name} {place}=FILE")


def read_review_files(
    previews: Sequence[str],
    fits: Sequence[str],
    resources: tuple[Path, Path] | None,
    request: "CompareRequest",
) -> ReviewFiles:
    """Read each file within its limits, before any program runs.

    A fit or a file of resources that is missing or cannot be read is no error: the job that writes it runs the change,
    and may fail.

    Args:
        previews: The values of --preview.
        fits: The values of --fit.
        resources: The value of --resources.
        request: The revisions under review.

    Raises:
        RefusalError: A value has another form, a preview cannot be read, or a file is part of the change.
        RevisionError: The repository or the revision cannot be read.
    """
    preview_files, fit_files = _parse(_PREVIEW, previews), _parse(_FIT, fits)
    _require_independent(
        (*preview_files.values(), *fit_files.values(), *(resources or ())), request
    )
    return ReviewFiles(
        {owner: _read_preview(owner[1], path) for owner, path in preview_files.items()},
        {owner: _read_fits(path) for owner, path in fit_files.items()},
        (_read_resources(resources[0]), _read_resources(resources[1])) if resources else None,
    )


def _parse(option: str, values: Sequence[str]) -> dict[_Owner, Path]:
    """Return the files of an option."""
    files: dict[_Owner, Path] = {}
    for value in values:
        name, _, file = value.partition("=") if "=" in value else ("", "", value)
        folder, _, environment = name.rpartition("/") if option == _PREVIEW else (name, "", "")
        has_name = bool(name) or "=" not in value
        if option == _PREVIEW:  # its name is part of file names and of the comment
            has_name = re.fullmatch(environment_name_form()["pattern"], environment) is not None
        if not file or not has_name:
            form, example = _FORMS[option]
            raise UsageError(
                f"{option} {printable(value)}: it takes {form}", f"for example: {option} {example}"
            )
        owner = os.path.normpath(folder) if folder else _ONLY, environment
        if owner in files:
            raise UsageError(
                f"{option} {printable(value)}: another file is given for it already",
                "give one file",
            )
        files[owner] = Path(file)
    return files


def _require_independent(paths: Iterable[Path], request: "CompareRequest") -> None:
    """Refuse files that are part of the change under review: its author decides what they contain."""
    repository = request.open_repository()
    for path in paths:
        if repository.tracks(path, request.head):
            message = (
                f"{path} is part of the change under review, so it proves nothing about that change"
            )
            command = f"git rm --cached {quote(printable(str(path)))}"
            raise RefusalError(
                message, f"write it to a file that is not committed, or remove it: {command}"
            )


# Only a file's name is in the comment: its folder differs between machines, but equal reviews must have equal text. Of
# each file one byte more than its limit is read, so that its reader can detect one that exceeds it.


def _read_preview(environment: str, path: Path) -> "Preview":
    from tpucfg.changes.previews import MAX_PREVIEW_BYTES, read_preview

    try:
        with open_regular_file(path, follow_links=False) as file:
            return read_preview(environment, path.name, file.read(MAX_PREVIEW_BYTES + 1))
    except OSError as error:
        raise RefusalError(
            f"{path}: {error.strerror or error}", "write it with: pulumi preview --json"
        ) from None


def _read_fits(path: Path) -> "RunFits":
    from tpucfg.changes.fits import RunFits
    from tpucfg.fit.fit_file import read_fit_file

    file = read_fit_file(path, is_trusted=True)
    if file.findings:
        return RunFits(file, file.findings[0].message)
    return RunFits(file, "" if os.path.lexists(path) else f"its job has left no {path.name}")


def _read_resources(path: Path) -> "ResourceFile":
    from tpucfg.infra.resources import MAX_FILE_BYTES, ResourceFile, read_resource_file

    try:
        with open_regular_file(path, follow_links=False) as file:
            return read_resource_file(path.name, file.read(MAX_FILE_BYTES + 1))
    except OSError as error:
        return ResourceFile(path.name, problem=str(error.strerror))
