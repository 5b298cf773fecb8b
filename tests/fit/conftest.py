"""The fixture of a spec with a false Python."""

from pathlib import Path

import pytest

from false_python import Folder
from published import rows


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs on v2 and v5e, so that outputs do not change when a real run is added."""
    monkeypatch.setattr("tpucfg.fit.forecast.published_rows", lambda: (*rows("v2"), *rows("v5e")))


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Folder:
    """Create a spec with a false Python, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path, capsys)
