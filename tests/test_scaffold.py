"""The origin of an installation, as installers record it: https://packaging.python.org/specifications/direct-url/."""

import json
from typing import Any

import pytest

from tpucfg.scaffold import UnknownSourceError, requirement_of_origin

COMMIT = "0123456789" * 4
HASH = "0123456789abcdef" * 4
WHEEL = "https://example.com/a/tpucfg-0.1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (
            {
                "url": "https://github.com/acme/tpucfg",
                "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": COMMIT},
            },
            f"tpucfg[infra] @ git+https://github.com/acme/tpucfg@{COMMIT}",
        ),
        (
            {"url": WHEEL, "archive_info": {"hash": f"sha256={HASH}", "hashes": {"sha256": HASH}}},
            f"tpucfg[infra] @ {WHEEL}#sha256={HASH}",
        ),
        (
            {"url": f"{WHEEL}#sha256={HASH}", "archive_info": {"hashes": {"sha256": HASH}}},
            f"tpucfg[infra] @ {WHEEL}#sha256={HASH}",
        ),
    ],
)
def test_public_origin_is_pinned(origin: Any, requirement: str) -> None:
    """A repository is pinned by the commit that was installed, and a file by its hash."""
    assert requirement_of_origin(json.dumps(origin)) == requirement


@pytest.mark.parametrize(
    "origin",
    [
        {"url": "file:///home/me/tpucfg", "dir_info": {"editable": True}},
        {
            "url": "file:///home/me/tpucfg-0.1.0-py3-none-any.whl",
            "archive_info": {"hashes": {"sha256": HASH}},
        },
        {"url": WHEEL, "archive_info": {}},
        {"url": WHEEL},
        {
            "url": "ssh://git@github.com/acme/tpucfg",
            "vcs_info": {"vcs": "git", "commit_id": COMMIT},
        },
        {
            "url": "https://user:****@github.com/acme/tpucfg",
            "vcs_info": {"vcs": "git", "commit_id": COMMIT},
        },
        {"url": "https://example.com/tpucfg", "vcs_info": {"vcs": "hg", "commit_id": COMMIT}},
        {"url": "https://example.com/it's", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
        [],
        None,
        "dir",
    ],
)
def test_other_origin_is_unknown(origin: Any) -> None:
    """An origin on this machine, with a login, or without a commit or hash cannot be written into a workflow."""
    with pytest.raises(UnknownSourceError):
        requirement_of_origin(json.dumps(origin))


def test_invalid_record_is_unknown() -> None:
    """A file that is no JSON is no error of the command."""
    with pytest.raises(UnknownSourceError):
        requirement_of_origin("{")
