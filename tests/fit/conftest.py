"""The fixture of a spec with a false Python."""

from pathlib import Path

import pytest

from false_python import Folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    """Create a spec with a false Python, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path, capsys)
