"""Every attack is answered above the folds of the comment, and by the exit status."""

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from attacks.attack import Attack
from repositories import Repository, project
from tpucfg.cli.app import run

pytestmark = pytest.mark.programs

_SUBJECTS: Final = sorted(
    path.stem for path in Path(__file__).parent.glob("[a-z]*.py") if path.stem not in {"attack", "test_attacks"}
)


def _attacks() -> Iterator[Any]:
    for subject in _SUBJECTS:
        for attack in importlib.import_module(f"attacks.{subject}").ATTACKS:
            yield pytest.param(attack, id=f"{subject}-{attack.id}")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with one commit, to copy."""
    return project(tmp_path_factory.mktemp("attacked") / "project").folder


@pytest.mark.parametrize("attack", [*_attacks()])
def test_attack_is_reported(
    attack: Attack,
    template: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The comment names the danger above its folds, and the status fails the check."""
    repository = Repository(Path(shutil.copytree(template, tmp_path / "project")))
    if attack.base:
        attack.base(repository)
        repository.commit()
    attack.edit(repository)
    repository.commit()
    monkeypatch.chdir(repository.folder)

    status = run(["review", "--base", "HEAD~1", "--head", "HEAD", "--fail-on", "destructive", *attack.arguments])

    comment, log = capsys.readouterr()
    visible = comment.partition("<details")[0]
    assert [text for text in attack.cautions if text not in visible] == [], f"{visible}\n{log}"
    assert [text for text in attack.absent if text in comment + log] == []
    assert status == attack.status, log
