"""The commit that an earlier review was of, and the base that it was compared with."""

from typing import NamedTuple

from tpucfg.git.repository import Repository, RevisionError


class ReviewedCommit(NamedTuple):
    """A commit that was reviewed before."""

    id: str
    base: str
    """The commit that its review compared it with."""
    shown: str
    """The commit to show: authors know the commit that they pushed, and not GitHub's trial merge of it."""


def find_reviewed_commit(repository: Repository, revision: str, base: str) -> ReviewedCommit | None:
    """Return the commit of an earlier review; None if this clone lacks it, for example after a forced push.

    Args:
        repository: the repository.
        revision: the revision that was reviewed.
        base: the base of the current review.

    Raises:
        RevisionError: The base does not exist.
    """
    try:
        commit = repository.resolve(revision)
    except RevisionError:
        return None
    current_base = repository.resolve(base)
    if commit is None or current_base is None:
        return None
    first, merged = repository.merged_commits(commit)
    # A shallow clone has no merge base, but both parents of a trial merge.
    old_base = repository.merge_base(current_base, commit) or first or current_base
    return ReviewedCommit(commit, old_base, merged if first == old_base and merged else commit)
