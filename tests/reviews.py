"""Reviews of the changes in a working tree, by the command."""

import pytest

from tpucfg.cli.app import run


def review(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """Return the output for the changes in the working tree."""
    capsys.readouterr()
    assert run(["review", "--base", "HEAD", *arguments]) == status
    return capsys.readouterr().out
