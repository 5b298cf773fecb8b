"""Every attack is answered above the folds of the comment, and by the exit status."""

import importlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from attacks.attack import Attack
from attacks.harmful import HARMFUL
from attacks.recorded import declare, record, record_template, write_resources
from goldens import Goldens
from repositories import Repository, project
from tpucfg.cli.app import run
from tpucfg.cli.exit_codes import DIFFERENT

_SUBJECTS: Final = sorted(
    path.stem
    for path in Path(__file__).parent.glob("[a-z]*.py")
    if path.stem not in {"attack", "harmful", "recorded", "test_attacks"}
)
_CODE: Final = re.compile(r"`[^`]+`")
END_TO_END: Final = frozenset(
    (
        "access-members-of-a-whole-policy",
        "environments-protection-lifted",
        "environments-protection-lifted-while-the-program-fails",
        "found_by_review-second-spec-with-a-strangers-image-on-the-same-bucket",
        "jobs-image-from-another-registry",
        "programs-grant-behind-one-of-the-same-name",
        "programs-prints-commands-to-the-log",
        "programs-public-bucket-wrapped-as-secret",
        "resources-force-destroy",
        "stack_files-program-deleted",
        "harmful-new-type-of-resource",
        "harmful-program-that-reads-its-environment",
    )
)
"""Attacks whose programs run in the test; of the others, the resources are recorded."""


TELLING: Final = frozenset(
    (
        "environments-protection-lifted-while-the-program-fails",
        "programs-prints-commands-to-the-log",
        "harmful-program-that-reads-its-environment",
    )
)
"""Attacks by a program that runs; what the others declare is recorded, and the review of it is the same."""


def _marks(name: str) -> list[pytest.MarkDecorator]:
    if name not in END_TO_END:
        return [pytest.mark.slow]
    return [pytest.mark.programs, *([pytest.mark.telling] if name in TELLING else [])]


def _harmful() -> Iterator[Any]:
    for item in HARMFUL:
        name = f"harmful-{item.id}"
        yield pytest.param(name, item, id=item.id, marks=_marks(name))


def _attacks() -> Iterator[Any]:
    for subject in _SUBJECTS:
        for attack in importlib.import_module(f"attacks.{subject}").ATTACKS:
            name = f"{subject}-{attack.id}"
            yield pytest.param(name, attack, id=name, marks=_marks(name))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, goldens: Goldens) -> Path:
    """Return a project with one commit, to copy."""
    repository = project(tmp_path_factory.mktemp("attacked") / "project")
    if goldens.are_written:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(repository.folder)
            record_template(repository)
    return repository.folder


def review(
    name: str, attack: Attack, template: Path, folder: Path, fail_on: str, *, records: bool
) -> int:
    """Commit an attack in the current folder, and review it; return the exit status.

    With `records`, what the programs of both revisions declare is recorded before.
    """
    repository = Repository(
        Path(shutil.copytree(template, folder / "project", symlinks=True, dirs_exist_ok=True))
    )
    if attack.base:
        attack.base(repository)
        repository.commit()
    base = declare(repository) if records and attack.base else None
    attack.edit(repository)
    repository.commit()
    if records:
        record(name, base, declare(repository))
    source = (
        ["--run-program"] if name in END_TO_END else ["--resources", *write_resources(name, folder)]
    )
    options = ["--base", "HEAD~1", "--head", "HEAD", "--fail-on", fail_on]
    return run(["review", *options, *source, *attack.arguments])


@pytest.mark.parametrize(("name", "attack"), [*_attacks()])
def test_attack_is_reported(
    name: str,
    attack: Attack,
    template: Path,
    goldens: Goldens,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The comment names the danger above its folds, with its scope and its values, and the status fails the check."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")

    status = review(name, attack, template, tmp_path, "destructive", records=goldens.are_written)

    comment, log = capsys.readouterr()
    visible = comment.partition("<details")[0]
    assert [text for text in attack.cautions if not _is_named(text, visible)] == [], (
        f"{visible}\n{log}"
    )
    assert [text for text in attack.absent if text in comment + log] == []
    assert status == attack.status, log


@pytest.mark.parametrize(("name", "attack"), [*_harmful()])
def test_harmful_change_is_a_caution(
    name: str,
    attack: Attack,
    template: Path,
    goldens: Goldens,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A change that no list names is in the block of cautions by rule."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")

    assert (
        review(name, attack, template, tmp_path, "caution", records=goldens.are_written)
        == DIFFERENT
    )

    comment, log = capsys.readouterr()
    block = "\n".join(
        line for line in comment.partition("<details")[0].splitlines() if line.startswith("> ")
    )
    assert [text for text in attack.cautions if text not in block] == [], f"{block}\n{log}"


def _is_named(text: str, visible: str) -> bool:
    """Return True if one line has the values of a text; the words around them are free."""
    values = _CODE.findall(text)
    return any(
        all(value in line for value in values or [text.strip()]) for line in visible.splitlines()
    )
