import shutil
from pathlib import Path

import pytest

import official
from official import gke, samples

pytestmark = pytest.mark.official


@pytest.mark.parametrize(("target", "path"), samples.of_kinds("good", "missed"), ids=samples.name)
def test_good_config_is_accepted(target: str, path: Path) -> None:
    """The official code accepts these configs; the schema's tests cover its omissions."""
    assert official.refusals(target, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("target", "path"), samples.of_kinds("bad"), ids=samples.name)
def test_bad_config_is_rejected_by_name(target: str, path: Path) -> None:
    """The official code rejects a misspelt field, a wrong enum value and a wrong type, and names it."""
    refused = official.refusals(target, path.read_text(encoding="utf-8"))
    assert samples.expected(path) in "\n".join(refused)


@pytest.mark.parametrize("target", official.MODULES)
def test_each_config_has_its_own_result(target: str) -> None:
    """Of many configs in one call, each has its own result, for text and for data."""
    good, bad = (samples.FOLDER / target / kind for kind in ("good", "bad"))
    text = next(good.iterdir()).read_text(encoding="utf-8")
    results = official.all_refusals(
        target, [text, next(bad.iterdir()).read_text(encoding="utf-8"), {"nonsense": 1}, text]
    )
    assert [bool(result) for result in results] == [False, True, True, False]


def test_missing_go_skips_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Go, the check of gke is skipped, and the report gives the reason."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv(gke.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="Go is missing"):
        official.refusals("gke", {})


def test_missing_go_fails_if_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no test may be skipped, a missing Go is a failure."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setenv(gke.REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="Go is missing"):
        official.refusals("gke", {})
