"""Review the specs of a repository, and the commit that was reviewed before."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tpucfg.cli.environment_files import ONLY
from tpucfg.cli.exit_codes import USAGE, CommandExit
from tpucfg.text_format import printable

if TYPE_CHECKING:
    from pathlib import PurePosixPath

    from tpucfg.git.snapshots import CompareRequest
    from tpucfg.review.changes.fits.revision_fits import RunFits
    from tpucfg.review.cloud_files import CloudFiles
    from tpucfg.review.review import EarlierReview, RepositoryReview
    from tpucfg.review.scope import ReviewScope

_Read = TypeVar("_Read")
"""The content of a file: a preview, or a policy."""


def review_specs(scope: "ReviewScope", cloud: "CloudFiles") -> "RepositoryReview":
    """Review each spec; one that cannot be read does not prevent the review of the others.

    Raises:
        RevisionError: The only spec cannot be read.
    """
    from tpucfg.cli.load_spec import progress
    from tpucfg.git.repository import RevisionError
    from tpucfg.review.build import review_spec
    from tpucfg.review.cloud_files import CloudFiles
    from tpucfg.review.review import RepositoryReview, SpecFailure
    from tpucfg.review.scope import without_renamed_specs

    for option, files in (("--preview", cloud.previews), ("--policy", cloud.policies)):
        _require_folders(scope, option, files)
    _require_folder_of_fits(scope, cloud.fits)
    is_only = len(scope.requests) == 1
    reviews, failures = [], []
    with progress("reviewing specs", len(scope.requests)) as advance:
        for path, request in scope.requests.items():
            try:
                own = CloudFiles(
                    _files_of(path, cloud.previews, is_only=is_only),
                    _files_of(path, cloud.policies, is_only=is_only),
                    _fits_of(path, cloud.fits, is_only=is_only),
                )
                reviews.append(review_spec(request, own))
            except RevisionError as error:
                if is_only:
                    raise
                failures.append(SpecFailure(path.as_posix(), str(error), error.help))
            advance()
    return RepositoryReview(
        without_renamed_specs(reviews),
        tuple(failures),
        tuple(map(str, scope.others)),
        is_of_repository=scope.is_of_repository,
    )


def review_earlier(
    request: "CompareRequest", specs: Sequence[Path], revision: str, result: "RepositoryReview", *, is_plain: bool
) -> "EarlierReview | None":
    """Review the commit of an earlier review; None if it is the current one.

    Args:
        request: the current comparison.
        specs: the specs of --spec.
        revision: the commit that was reviewed before.
        result: the current review.
        is_plain: True if nothing of the current review is read from the cloud.
    """
    from tpucfg.git.repository import RevisionError, find_repository
    from tpucfg.git.reviewed import find_reviewed_commit
    from tpucfg.review.cloud_files import CloudFiles
    from tpucfg.review.review import EarlierReview
    from tpucfg.review.scope import find_review_scope

    if revision.startswith("-") or not revision.isprintable():
        raise CommandExit(USAGE, f"--since {printable(revision)} is not a revision", "give the commit reviewed before")
    repository = find_repository(specs[0].parent if specs else Path())
    commit = find_reviewed_commit(repository, revision, request.base)
    if commit is None:
        return EarlierReview(revision)
    heads = {review.after.snapshot.commit for review in result.reviews}
    if any(head and commit.id in {head.id, head.merges} for head in heads):
        return None
    then = request._replace(base=commit.base, head=commit.id)
    try:
        earlier = review_specs(find_review_scope(then, specs), CloudFiles()).reviews
    except RevisionError:
        earlier = ()  # the commit has no spec
    plain = result if is_plain else review_specs(find_review_scope(request, specs), CloudFiles())
    return EarlierReview(revision, commit.shown, commit.id, earlier, plain.reviews)


def _require_folders(scope: "ReviewScope", option: str, names: Collection[str]) -> None:
    """Raise CommandExit for a file without a folder if it could be of several specs."""
    folders = [path.parent.as_posix() for path in scope.requests]
    name = next((name for name in names if "/" not in name), None)
    if name and len(folders) > 1 and "." not in folders:
        raise CommandExit(
            USAGE,
            f"{option} {name}=…: {len(folders)} specs are reviewed, and each could have this environment",
            f"name the spec's folder: {option} {folders[0]}/{name}=FILE",
        )


def _require_folder_of_fits(scope: "ReviewScope", fits: Collection[str]) -> None:
    """Raise CommandExit for results of a folder without a spec, and for those that could be of several specs."""
    folders = sorted({path.parent.as_posix() for path in scope.requests})
    known = {ONLY, *folders, *(path.parent.as_posix() for path in scope.others)}
    if unknown := next((name for name in fits if name not in known), None):
        message = f"--fit {printable(unknown)}=…: this folder has no spec in either revision"
        raise CommandExit(USAGE, message, "give the folder relative to the root of the repository")
    if ONLY in fits and len(folders) > 1 and "." not in folders:
        raise CommandExit(
            USAGE,
            f"--fit: {len(folders)} folders with specs are reviewed, and each could have these results",
            f"name the spec's folder: --fit {folders[0]}=FILE",
        )


def _fits_of(spec: "PurePosixPath", fits: "Mapping[str, RunFits]", *, is_only: bool) -> "Mapping[str, RunFits]":
    """Return the results for a spec under the name ONLY, as it is the only one that is reviewed with them."""
    folder = spec.parent.as_posix()
    names = (folder, ONLY) if is_only or folder == "." else (folder,)
    chosen = next((fits[name] for name in names if name in fits), None)
    return {ONLY: chosen} if chosen else {}


def _files_of(spec: "PurePosixPath", files: Mapping[str, _Read], *, is_only: bool) -> dict[str, _Read]:
    """Return the files of a spec by environment; a name without a folder is of the only spec, or one at the root."""
    folder = spec.parent.as_posix()
    folders = {folder, ""} if is_only or folder == "." else {folder}
    parts = ((name.rpartition("/"), file) for name, file in files.items())
    return {environment: file for (owner, _, environment), file in parts if owner in folders}
