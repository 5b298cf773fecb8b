"""Review the specs of a repository, each with the files that other jobs have made about it."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from tpucfg.cli.environment_files import ONLY
from tpucfg.cli.exit_codes import USAGE, CommandExit
from tpucfg.text_format import printable

if TYPE_CHECKING:
    from pathlib import PurePosixPath

    from tpucfg.review.build import GivenFiles
    from tpucfg.review.review import RepositoryReview
    from tpucfg.review.scope import ReviewScope


def review_specs(scope: "ReviewScope", given: "GivenFiles") -> "RepositoryReview":
    """Review each spec; one that cannot be read does not prevent the review of the others.

    Args:
        scope: the specs.
        given: the files that other jobs have made.

    Raises:
        RevisionError: The only spec cannot be read.
    """
    from tpucfg.cli.load_spec import progress
    from tpucfg.git.repository import RevisionError
    from tpucfg.review.build import review_spec
    from tpucfg.review.review import RepositoryReview, SpecFailure
    from tpucfg.review.scope import without_renamed_specs

    _require_folders_of_previews(scope, given.previews)
    _require_folders_of_fits(scope, given.fits)
    is_only = len(scope.requests) == 1
    reviews, failures = [], []
    with progress("reviewing specs", len(scope.requests)) as advance:
        for path, request in scope.requests.items():
            try:
                reviews.append(review_spec(request, _files_of(path, given, is_only=is_only)))
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


def _require_folders_of_previews(scope: "ReviewScope", names: Collection[str]) -> None:
    """Raise CommandExit for a preview without a folder if it could be of several specs."""
    folders = [path.parent.as_posix() for path in scope.requests]
    name = next((name for name in names if "/" not in name), None)
    if name and len(folders) > 1 and "." not in folders:
        raise CommandExit(
            USAGE,
            f"--preview {name}=…: {len(folders)} specs are reviewed, and each could have this environment",
            f"name the spec's folder: --preview {folders[0]}/{name}=FILE",
        )


def _require_folders_of_fits(scope: "ReviewScope", fits: Collection[str]) -> None:
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


def _files_of(spec: "PurePosixPath", given: "GivenFiles", *, is_only: bool) -> "GivenFiles":
    """Return the files of a spec; one without a folder is of the only spec, or of one at the root."""
    folder = spec.parent.as_posix()
    folders = (folder, ONLY) if is_only or folder == "." else (folder,)
    parts = ((name.rpartition("/"), preview) for name, preview in given.previews.items())
    previews = {environment: preview for (owner, _, environment), preview in parts if owner in folders}
    fits = [given.fits[name] for name in folders if name in given.fits]
    return given._replace(previews=previews, fits={ONLY: fits[0]} if fits else {})
