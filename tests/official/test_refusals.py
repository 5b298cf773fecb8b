import shutil
from pathlib import Path

import pytest

import official
from official import gke, samples


@pytest.mark.parametrize(("target", "path"), samples.of("good", "missed"), ids=samples.name)
def test_a_good_config_is_taken(target: str, path: Path) -> None:
    """The official code has nothing against these; what it misses there, the schema's tests refuse."""
    assert official.refusals(target, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("target", "path"), samples.of("bad"), ids=samples.name)
def test_a_bad_config_is_refused_by_name(target: str, path: Path) -> None:
    """The official code refuses a misspelt field, a wrong enum value and a wrong type, and names it."""
    refused = official.refusals(target, path.read_text(encoding="utf-8"))
    assert samples.expected(path) in "\n".join(refused)


@pytest.mark.parametrize("target", official.MODULES)
def test_each_config_gets_its_own_answer(target: str) -> None:
    """Of many configs in one call each is answered in its place, whether it comes as text or as data."""
    good, bad = (samples.FOLDER / target / kind for kind in ("good", "bad"))
    text = next(good.iterdir()).read_text(encoding="utf-8")
    answers = official.all_refusals(
        target, [text, next(bad.iterdir()).read_text(encoding="utf-8"), {"nonsense": 1}, text]
    )
    assert [bool(answer) for answer in answers] == [False, True, True, False]


def test_a_missing_go_skips_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Go the check of gke is skipped, and the report says that Go is missing."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv(gke.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="Go is missing"):
        official.refusals("gke", {})


def test_a_missing_go_fails_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everything must be shown, a missing Go is a failure, not a skip."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setenv(gke.REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="Go is missing"):
        official.refusals("gke", {})
