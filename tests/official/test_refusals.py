import shutil
from pathlib import Path

import pytest

import official
from official import samples

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


@pytest.mark.telling
@pytest.mark.parametrize("target", official.MODULES)
def test_each_config_has_its_own_result(target: str) -> None:
    """Of many configs in one call, each has its own result, for text and for data.

    It finds a check that accepts everything, with which all other tests of this folder would pass.
    """
    good, bad = (samples.FOLDER / target / kind for kind in ("good", "bad"))
    text = next(good.iterdir()).read_text(encoding="utf-8")
    results = official.all_refusals(
        target, [text, next(bad.iterdir()).read_text(encoding="utf-8"), {"nonsense": 1}, text]
    )
    assert [bool(result) for result in results] == [False, True, True, False]


@pytest.mark.parametrize(
    ("required", "outcome"),
    [((), pytest.skip.Exception), (("official",), pytest.fail.Exception)],
)
def test_without_the_checks_of_jobset_the_reason_is_given(
    monkeypatch: pytest.MonkeyPatch, required: tuple[str, ...], outcome: type[BaseException]
) -> None:
    """Without Go, the check of gke is skipped, and fails where it is required."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr("required.REQUIRED", frozenset(required))
    with pytest.raises(outcome, match="make cluster"):
        official.refusals("gke", {})
