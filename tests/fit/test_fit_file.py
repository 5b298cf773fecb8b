"""The file of results is written atomically, and read with suspicion."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fit_results import RESULT
from process import without_root
from tpucfg.fit.fit_file import (
    MAX_FILE_BYTES,
    FitFile,
    FitResult,
    fit_file_text,
    fit_path,
    read_fit_file,
    update_fit_file,
)

OTHER = RESULT._replace(
    key=RESULT.key._replace(size="v2-32"),
    inputs=RESULT.inputs._replace(
        flags={"bare": None, "many": ("1", None)}, xla_flags=("--xla_a=1",), env={"A": "é"}
    ),
    files={"trainer/fit.py": "0123456789abcdef"},
    fits=False,
    memory=RESULT.memory._replace(used=2**40, exact=False),
    uncounted=("while",),
    forecast=None,
    state_bytes=10**12,
)


def written(folder: Path, *results: FitResult) -> Path:
    """Write results, and return the path of their file."""
    path = fit_path(folder)
    update_fit_file(path, lambda: results)
    return path


def read_text(folder: Path, text: str) -> FitFile:
    """Return the file with a text."""
    path = folder / "fit.json"
    path.write_text(text)
    return read_fit_file(path)


def changed(**values: Any) -> str:
    """Return the text of a file whose only result has other values."""
    data = json.loads(fit_file_text([RESULT]))
    data["results"][0] |= values
    return json.dumps(data)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A file has the same results when it is read, whatever their order was, and stands next to the records."""
    path = written(tmp_path, OTHER, RESULT)
    assert path == tmp_path / "results" / "fit.json"
    assert read_fit_file(path).results == {RESULT.key: RESULT, OTHER.key: OTHER}
    assert not read_fit_file(path).is_trusted
    assert fit_file_text([RESULT, OTHER]) == path.read_text()


def test_an_unchanged_file_is_not_written(tmp_path: Path) -> None:
    """Writing the same results again touches nothing."""
    path = written(tmp_path, RESULT)
    before = path.stat().st_ino
    assert not update_fit_file(path, lambda: [RESULT])
    assert path.stat().st_ino == before
    assert update_fit_file(path, lambda: [OTHER])
    assert [entry.name for entry in path.parent.iterdir()] == ["fit.json"]


def test_no_file_means_no_results(tmp_path: Path) -> None:
    """A spec that was never compiled has no results, and no finding."""
    assert read_fit_file(tmp_path / "fit.json") == FitFile(tmp_path / "fit.json", {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not valid JSON"),
        ("[1, 2", "not valid JSON"),
        ('{"version": 1, "version": 1, "results": []}', "occurs twice"),
        ('{"version": 1e999, "results": []}', "not a finite number"),
        ('{"version": ' + "9" * 30 + ', "results": []}', "too large"),
        ("[" * 100_000, "nested"),
        ('{"version": 2, "results": []}', "version"),
        (changed(flops=-1), "flops"),
        (changed(spy=1), "spy"),
        (changed(files={"../../etc/passwd": "0" * 16}), "below the folder"),
        (changed(files={"/etc/passwd": "0" * 16}), "below the folder"),
        (changed(files={"a/../../b": "0" * 16}), "below the folder"),
        (changed(stablehlo="x"), "SHA-256"),
        (
            changed(hbm={"used": 9, "available": 8, "exact": True}),
            "the result of dev v2-8 contradicts itself: it fits",
        ),
        (
            changed(hbm={"used": 9, "available": 8, "exact": True}),
            "it fits, and needs 9 of 8 bytes",
        ),
        (
            changed(hbm={"used": 8, "available": 9, "exact": False}),
            "it fits, and the memory is not exact",
        ),
        (changed(fits=False), "it does not fit, and needs"),
    ],
)
def test_a_file_with_a_mistake_has_no_results(tmp_path: Path, text: str, reason: str) -> None:
    """Nothing in a file with a mistake counts; the finding has the reason and the command that helps."""
    file = read_text(tmp_path, text)
    assert file.results == {}
    assert {finding.id for finding in file.findings} == {"TPU109"}
    assert reason in "\n".join(line for finding in file.findings for line in finding.lines)
    assert all(finding.help for finding in file.findings)


def test_a_refusal_is_rounded(tmp_path: Path) -> None:
    """The compiler may refuse a step with the same two decimals for what it needs and what is available."""
    text = changed(fits=False, hbm={"used": 8, "available": 8, "exact": False})
    assert read_text(tmp_path, text).findings == ()


def test_a_rung_has_one_result(tmp_path: Path) -> None:
    """Two results of one rung are a mistake: a merge of two branches kept both."""
    (finding,) = read_text(tmp_path, fit_file_text([RESULT, RESULT])).findings
    assert "two results" in finding.message


def test_a_folder_that_may_not_be_searched_is_named() -> None:
    """Nothing can ask there what the path is, and no result counts."""
    with tempfile.TemporaryDirectory() as name:  # other users cannot enter pytest's own
        Path(name).chmod(0o755)
        path = fit_path(Path(name))
        path.parent.mkdir()
        path.parent.chmod(0)
        with without_root():
            (finding,) = read_fit_file(path).findings
    assert "permission denied" in finding.message
    assert finding.help.startswith("check the free space, its permissions")


def test_the_folder_is_a_folder(tmp_path: Path) -> None:
    """A file or a link in its place is named, and a folder in place of the file; there is no file to delete."""
    path = fit_path(tmp_path)
    path.parent.touch()
    (finding,) = read_fit_file(path).findings
    assert "not a directory" in finding.message
    assert finding.help.endswith("a file in a folder, without links, and compile again: tpucfg fit")
    path.parent.unlink()
    path.mkdir(parents=True)
    (finding,) = read_fit_file(path).findings
    assert "is a directory" in finding.message
    path.rmdir()
    path.parent.rename(tmp_path / "other")
    path.parent.symlink_to("other")
    (finding,) = read_fit_file(path).findings
    assert "a symbolic link" in finding.message


def test_only_a_small_regular_file_is_read(tmp_path: Path) -> None:
    """A link, a pipe and a huge file are refused, and none of them blocks."""
    path = tmp_path / "fit.json"
    path.symlink_to(written(tmp_path, RESULT))
    assert "a symbolic link" in read_fit_file(path).findings[0].message
    path.unlink()
    os.mkfifo(path)
    assert read_fit_file(path).findings
    path.unlink()
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert "larger than" in read_fit_file(path).findings[0].message
