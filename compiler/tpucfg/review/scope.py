"""The specs that a review covers: the given ones, or all that the change affects."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tpucfg.git.changed_files import TreeChange, find_affected_specs, read_tree_change
from tpucfg.git.repository import RevisionError, find_repository
from tpucfg.git.snapshots import CompareRequest, resolve_commits
from tpucfg.infra.stack_files import PROJECT_FILES
from tpucfg.review.review import Review
from tpucfg.spec import SPEC_NAME


class ReviewScope(NamedTuple):
    """The comparisons of a review."""

    requests: Mapping[PurePosixPath, CompareRequest]
    """By the spec's path in the repository."""
    others: tuple[PurePosixPath, ...]
    """The specs that are not affected."""
    tree: TreeChange
    """The files of both revisions."""
    is_of_repository: bool
    """True if the specs were found in the repository, and not given."""

    @property
    def has_stack_elsewhere(self) -> bool:
        """True if either revision has a Pulumi project in a folder without a spec."""
        files = self.tree.before | self.tree.after
        with_spec = {path.parent for path in files if path.name == SPEC_NAME or path in self.requests}
        return any(path.name in PROJECT_FILES and path.parent not in with_spec for path in files)


def find_review_scope(request: CompareRequest, specs: Sequence[Path] = ()) -> ReviewScope:
    """Return the scope of a review.

    Args:
        request: the revisions to compare. Its spec is the one to review in a repository without a spec, so that the
            error names it.
        specs: the specs to review; if empty, those that the change affects.

    Raises:
        RevisionError: A revision does not exist, or two of the specs are the same.
    """
    given = _requests_by_path(request, specs)
    repository = find_repository(specs[0].parent if specs else Path())
    commits = resolve_commits(repository, request)
    tree = read_tree_change(repository, commits.base, commits.head if request.head is not None else None)
    if specs:
        return ReviewScope(given, (), tree, is_of_repository=False)
    scope = find_affected_specs(tree)
    root = repository.at_root().folder
    current = Path.cwd().resolve()
    requests = {path: request._replace(spec=Path(os.path.relpath(root / path, current))) for path in scope.affected}
    if not requests and not scope.others:
        requests = dict(_requests_by_path(request, [request.spec]))
    return ReviewScope(requests, scope.others, tree, is_of_repository=True)


def without_renamed_specs(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Return the reviews without those of specs that another spec was renamed from: they seem to be removed."""
    all_reviews = tuple(reviews)
    renamed_from = {review.before.snapshot.renamed_from for review in all_reviews}
    return tuple(review for review in all_reviews if review.after.snapshot.exists or review.path not in renamed_from)


def _requests_by_path(request: CompareRequest, specs: Sequence[Path]) -> Mapping[PurePosixPath, CompareRequest]:
    requests: dict[PurePosixPath, CompareRequest] = {}
    for spec in specs:
        path = find_repository(spec.parent).prefix / spec.name
        if path in requests:
            raise RevisionError(f"--spec {spec} is given twice", "give each spec once")
        requests[path] = request._replace(spec=spec)
    return requests
