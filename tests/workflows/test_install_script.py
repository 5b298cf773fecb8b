"""The script that installs what runs beside an identity, with a small tpucfg and a package index in a folder."""

import base64
import hashlib
import os
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Final

import pytest

from repositories import Repository
from shellcheck import SHELLCHECK
from spec_factory import ROOT

pytestmark = pytest.mark.shell
SCRIPT: Final = ROOT / ".github/actions/install.sh"
LOCK: Final = "requirements-infra.txt"
BACKEND: Final = """
import pathlib, shutil
from packaging_of_the_lock import WHEEL
def build_wheel(folder, config_settings=None, metadata_directory=None):
    shutil.copy(WHEEL, folder)
    return pathlib.Path(WHEEL).name
"""
"""A build backend that imports a package of the lock."""
PROJECT: Final = """
[build-system]
requires = ["packaging_of_the_lock"]
build-backend = "backend"
backend-path = ["."]
"""


def wheel(folder: Path, name: str, files: dict[str, str], requires: str = "") -> Path:
    """Write a wheel of version 1 and return its path."""
    info = f"{name}-1.dist-info"
    requirement = f"Requires-Dist: {requires}\n" if requires else ""
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{requirement}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},\n"
        for path, text in files.items()
    )
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return path


def locked(path: Path) -> str:
    """Return the line of a lock for a wheel."""
    name = path.name.partition("-")[0]
    return f"{name}==1 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


class Index:
    """A folder of wheels, a repository of tpucfg, and a project that uses both."""

    def __init__(self, folder: Path) -> None:
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        dependency = wheel(self.wheels, "dependency", {"dependency.py": ""})
        own = wheel(self.wheels, "own", {"own.py": ""})
        tpucfg = wheel(folder, "tpucfg", {"tpucfg/__init__.py": ""}, "dependency")
        files = {"packaging_of_the_lock.py": f"WHEEL = {str(tpucfg)!r}\n"}
        build = wheel(self.wheels, "packaging_of_the_lock", files)
        self.repository = Repository(folder / "tpucfg")
        for name, text in (
            ("pyproject.toml", PROJECT),
            ("backend.py", BACKEND),
            (LOCK, locked(dependency) + locked(build)),
        ):
            (self.repository.folder / name).write_text(text)
        self.commit = self.repository.commit()
        # The newest commit is not the pinned one.
        (self.repository.folder / LOCK).write_text("unknown==1\n")
        self.repository.commit()
        self.folder = folder / "models/my chat"
        (self.folder / "stacks").mkdir(parents=True)
        self.requirements = self.folder / "stacks/requirements.txt"
        self.requirements.write_text(f"{self.requirement}\n")
        self.own_lock = locked(own)
        self.script = SCRIPT

    @property
    def requirement(self) -> str:
        """The requirement of the pinned commit."""
        return f"tpucfg[infra] @ git+{self.repository.folder.as_uri()}@{self.commit}"

    def install(self, requirement: str = "tpucfg") -> tuple[set[str], str]:
        """Run the script; return the modules that can be imported, none if it fails, and its output."""
        environment = {"PIP_FIND_LINKS": str(self.wheels), "PIP_NO_INDEX": "1", "LANG": "C.UTF-8"}
        completed = subprocess.run(
            ["bash", str(self.script), str(self.folder), requirement],
            env={**environment, "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        packages = self.folder.glob(".venv/lib/*/site-packages/*")
        names = {path.name.removesuffix(".py") for path in packages}
        installed = names & {"tpucfg", "dependency", "own"} if not completed.returncode else set()
        return installed, completed.stdout


@pytest.fixture
def index(tmp_path: Path) -> Index:
    """Create the packages and the project."""
    return Index(tmp_path)


def test_the_lock_of_the_pinned_commit_is_installed(index: Index) -> None:
    """Not that of a newer commit, and whatever the environment had before is gone."""
    (index.folder / ".venv/bin").mkdir(parents=True)
    (index.folder / ".venv/bin/left").touch()
    installed, output = index.install()
    assert installed == {"tpucfg", "dependency"}, output
    assert not (index.folder / ".venv/bin/left").exists()


def test_a_project_without_requirements_installs_the_address_of_the_workflow(index: Index) -> None:
    """The comment that `tpucfg init` writes without an address names none."""
    index.requirements.write_text("# tpucfg[infra] @ git+https://github.com/OWNER/tpucfg@COMMIT\n")
    installed, output = index.install(index.requirement)
    assert installed == {"tpucfg", "dependency"}, output
    index.requirements.unlink()
    assert index.install(index.requirement)[0] == {"tpucfg", "dependency"}


def test_packages_of_the_project_need_a_lock(index: Index) -> None:
    """Their lock is installed by its hashes; without one, the error has the command that writes it."""
    index.requirements.write_text(f"{index.requirement}\nown\n")
    installed, output = index.install()
    assert (installed, "uv pip compile --generate-hashes" in output) == (set(), True)
    lock = index.requirements.with_suffix(".lock")
    lock.write_text(index.own_lock)
    assert index.install()[0] == {"tpucfg", "dependency", "own"}
    for wrong in ("own==1\n", re.sub("sha256:.*", f"sha256:{'0' * 64}", index.own_lock)):
        lock.write_text(wrong)
        installed, output = index.install()
        assert (installed, "hash" in output.lower()) == (set(), True)


def test_another_dependency_than_the_locked_one_is_refused(index: Index) -> None:
    """A registry that serves other bytes under the locked version installs nothing."""
    wheel(index.wheels, "dependency", {"dependency.py": "print('mallory')\n"})
    installed, output = index.install()
    assert (installed, "DO NOT MATCH THE HASHES" in output) == (set(), True)


@pytest.mark.parametrize(
    "address", ["git+https://github.com/acme/tpucfg@main", "https://example.com/tpucfg-1.whl", "x"]
)
def test_an_address_that_can_change_is_refused(index: Index, address: str) -> None:
    """Only a commit, or a wheel with its hash, is installed."""
    index.requirements.write_text(f"tpucfg[infra] @ {address}\n")
    installed, output = index.install()
    assert (installed, "tpucfg is not pinned by a commit or a hash" in output) == (set(), True)


def test_a_wheel_brings_its_lock(index: Index, tmp_path: Path) -> None:
    """The lock inside the wheel is installed; the script reads a file here, and otherwise only https."""
    index.script = tmp_path / "install.sh"
    index.script.write_text(SCRIPT.read_text().replace("^https://", "^file://"))
    dependency = index.wheels / "dependency-1-py3-none-any.whl"
    files = {"tpucfg/__init__.py": "", f"tpucfg/{LOCK}": locked(dependency)}
    path = wheel(tmp_path, "tpucfg", files, "dependency")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    index.requirements.write_text(f"tpucfg[infra] @ {path.as_uri()}#sha256={digest}\n")
    installed, output = index.install()
    assert installed == {"tpucfg", "dependency"}, output
    index.requirements.write_text(f"tpucfg[infra] @ {path.as_uri()}#sha256={'0' * 64}\n")
    assert index.install()[0] == set()


def test_the_script_passes_shellcheck() -> None:
    """Actionlint checks workflows only."""
    completed = subprocess.run(
        [SHELLCHECK, str(SCRIPT)], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stdout
