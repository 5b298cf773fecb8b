"""The locks: the requirements of pyproject.toml, pinned by version and hash."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = {
    "requirements.txt": ("", "build"),
    "requirements-infra.txt": ("", "infra", "build"),
    "requirements-dev.txt": ("", "test", "lint", "docs", "release"),
    "benchmarks/requirements.txt": ("bench",),
    "tests/trainer/requirements.txt": ("tensorflow",),
    "tests/fit/requirements.txt": ("tpu-compiler",),
    "tests/fit/requirements-older.txt": ("tpu-compiler-older",),
    "tests/fit/requirements-oldest.txt": ("tpu-compiler-oldest",),
}
"""Contents of each lock: the project's own dependencies (``), extras and groups."""

each_lock = pytest.mark.parametrize("lock", LOCKS)


def _text(lock: str) -> str:
    return (ROOT / lock).read_text(encoding="utf-8")


def _pins(lock: str) -> dict[str, set[str]]:
    """Return the versions of each package: one, or one per range of Python versions."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", _text(lock), re.MULTILINE):
        pins.setdefault(name, set()).add(version)
    return pins


def _requirements(part: str) -> Iterator[Requirement]:
    project = PROJECT["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    for entry in extras[part] if part in extras else PROJECT["dependency-groups"][part]:
        if isinstance(entry, dict):
            yield from _requirements(entry["include-group"])
        else:
            yield Requirement(entry)


@each_lock
def test_lock_satisfies_the_requirements(lock: str) -> None:
    """Every requirement of pyproject.toml is pinned to a version that it allows."""
    pins = _pins(lock)
    requirements = [requirement for part in LOCKS[lock] for requirement in _requirements(part)]
    unmet = [
        str(requirement)
        for requirement in requirements
        if not any(requirement.specifier.filter(pins.get(requirement.name.lower(), ())))
    ]

    assert requirements
    assert not unmet


@each_lock
def test_lock_pins_each_package_by_hash(lock: str) -> None:
    """A lock contains only versions with hashes: no URL, no path and no index option."""
    for entry in _text(lock).replace("\\\n", " ").splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==\S+( ; [^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+", entry)


def test_locks_agree() -> None:
    """A package has one version in all environments of the project: tests use the installed versions."""
    versions: dict[str, set[frozenset[str]]] = {}
    for lock in ("requirements.txt", "requirements-infra.txt", "requirements-dev.txt"):
        for name, pinned in _pins(lock).items():
            versions.setdefault(name, set()).add(frozenset(pinned))

    assert {name: pins for name, pins in versions.items() if len(pins) > 1} == {}
