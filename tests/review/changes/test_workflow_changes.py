"""Changes to the files that run the review itself."""

from pathlib import PurePosixPath

import pytest

from tpucfg.changes.statements import Risk
from tpucfg.git.changed_files import ChangedFile
from tpucfg.review.changes.workflow_changes import workflow_statements

OLD, NEW = b"on: push # tpucfg\npermissions: {}\n", b"on: push\npermissions: {}\n"
MAY_COMMENT = b"on: pull_request\npermissions: {pull-requests: write}\n"


@pytest.mark.parametrize(
    ("path", "before", "after", "risk"),
    [
        (".github/workflows/review.yml", OLD, NEW, Risk.DESTRUCTIVE),
        (".github/workflows/review.yml", OLD, None, Risk.DESTRUCTIVE),
        (".github/workflows/review.yml", OLD, b"", Risk.DESTRUCTIVE),
        (".github/workflows/review.yml", None, OLD, None),
        (".github/workflows/ci.yml", NEW, NEW + b"# x", None),
        (".github/workflows/ci.yml", NEW, MAY_COMMENT, Risk.UNKNOWN),
        (".github/workflows/ci.yml", None, b"on: push\n", Risk.UNKNOWN),
        (".github/workflows/ci.yml", None, b"permissions: write-all\n", Risk.UNKNOWN),
        (".github/workflows/ci.yml", None, b"", Risk.UNKNOWN),
        (".github/workflows/README.md", None, b"tpucfg", None),
        (".github/workflows/old/ci.yml", None, b"on: push\n", None),
        (".github/actions/comment/comment.sh", b"a", b"b", Risk.DESTRUCTIVE),
        (".github/actions/comment/action.yml", None, b"b", None),
        (".github/actions/review/lib/x.sh", b"a", None, Risk.DESTRUCTIVE),
        (".gitlab-ci.yml", OLD, NEW, Risk.DESTRUCTIVE),
        (".gitlab-ci.yml", NEW, OLD, None),
    ],
)
def test_risk_of_a_changed_file(path: str, before: bytes | None, after: bytes | None, risk: Risk | None) -> None:
    """A file that runs the review stops a merge; another workflow is a risk only if it may write comments."""
    located = [*workflow_statements([ChangedFile(PurePosixPath(path), before, after)])]
    assert [item.statement.risk for item in located] == ([risk] if risk else [])
    assert all(path in item.plain for item in located)
