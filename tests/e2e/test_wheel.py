"""The built packages, installed with nothing but their locked dependencies."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import registry_readme
import yaml
from markdown_it import MarkdownIt

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("wheel")]

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = [
    pytest.param(minor, marks=pytest.mark.telling) if minor == sys.version_info.minor else minor
    for minor in range(11, 15)
]
"""The Python that runs the tests; the others, if the machine has them, only where the kind runs whole."""
README = (ROOT / "README.md").read_text(encoding="utf-8")
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


def _build(source: Path, kind: str, folder: Path) -> Path:
    """Build a package offline, with the locked backend."""
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        kind,
        "--directory",
        str(folder),
    ]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (package,) = folder.iterdir()
    return package


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sdist of this checkout."""
    return _build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of this checkout."""
    return _build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.telling
def test_the_sdist_builds_an_equal_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    """The wheels built from the sdist and from the checkout have equal files."""
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()

    assert _contents(_build(source, "wheel", tmp_path / "dist")) == _contents(wheel)


@pytest.mark.telling
def test_a_registry_accepts_the_metadata(sdist: Path, wheel: Path) -> None:
    """`twine check` finds no problem in the metadata and the README."""
    command = [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)

    assert completed.returncode == 0, completed.stdout
    assert completed.stdout.count("PASSED") == 2


@pytest.mark.telling
@pytest.mark.parametrize("repository", [None, "https://example.com/owner/tpucfg"])
def test_no_link_of_the_description_is_relative(wheel: Path, repository: str | None) -> None:
    """The description on a registry has only absolute links and images, with or without a repository URL."""
    [metadata] = [
        text for name, text in _contents(wheel).items() if name.endswith(".dist-info/METADATA")
    ]
    _, description = metadata.decode().split("\n\n", 1)
    text = registry_readme.without_relative_links(README, repository, "1.2.3")
    if repository is None:
        assert description == text
    inline = [token for block in MarkdownIt().parse(text) for token in block.children or ()]
    urls = [
        str(token.attrs["src" if token.type == "image" else "href"])
        for token in inline
        if token.type in {"image", "link_open"}
    ]

    assert urls
    assert all(url.startswith("https://") for url in urls)
    images = README.count("](docs/images/") if repository else 0
    assert sum(url.startswith(f"{repository}/raw/v1.2.3/docs/images/") for url in urls) == images
    assert all(
        block in text for block in re.findall(r"^```.*?^```$", README, re.DOTALL | re.MULTILINE)
    )


@pytest.mark.telling
@pytest.mark.parametrize(
    "folder",
    ["schema", "templates", "docs/findings", ".github/actions", "requirements-infra.txt"],
)
def test_wheel_carries_the_folders_of_the_root(wheel: Path, folder: str) -> None:
    """The wheel contains what the package reads at run time, and the lock that install.sh reads."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    names = subprocess.run(
        listed, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    contents = _contents(wheel)

    assert names
    for name in names:
        assert contents[f"tpucfg/{name}"] == (ROOT / name).read_bytes()


@pytest.mark.telling
def test_the_wheel_has_the_catalog_as_json(wheel: Path) -> None:
    """Each file of the catalog has an equal JSON file, which the installed package reads."""
    contents = _contents(wheel)
    written = [
        name
        for name in contents
        if name.startswith("tpucfg/catalog/data/") and name.endswith(".yaml")
    ]
    assert len(written) > 1
    for name in written:
        assert json.loads(contents[name.replace(".yaml", ".json")]) == yaml.safe_load(
            contents[name]
        )


def _pythons(minor: int) -> Iterator[str]:
    """Yield the interpreters of one version, on the PATH or from pyenv, whose shims may not work."""
    on_path = shutil.which(f"python3.{minor}")
    from_pyenv = Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3")
    for candidate in [*([on_path] if on_path else []), *map(str, sorted(from_pyenv))]:
        if (
            subprocess.run(
                [candidate, "-c", "import ensurepip"], capture_output=True, check=False
            ).returncode
            == 0
        ):
            yield candidate


@pytest.fixture(scope="module", params=PYTHONS, ids=lambda minor: f"python3.{minor}")
def run(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    """Return a function that runs a program of a virtual environment with the wheel, in a folder with a spec."""
    minor: int = request.param
    python = next(_pythons(minor), sys.executable if sys.version_info[:2] == (3, minor) else None)
    if python is None:
        pytest.skip(f"python3.{minor} is not on this machine")
    location = tmp_path_factory.mktemp("installed")
    # As in the Makefile, by the locked pip: it is installed only once, and the commands compile only what they import.
    subprocess.run([python, "-m", "venv", "--without-pip", str(location / "venv")], check=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(location / "venv/bin/python"),
        "--disable-pip-version-check",
    ]
    install = [*pip, "install", "--quiet", "--no-compile"]
    subprocess.run([*install, "--requirement", str(ROOT / "requirements.txt")], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    project = location / "project"
    project.mkdir()
    shutil.copy(ROOT / "tpucfg.yaml", project)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run_there(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(location / "venv/bin" / program), *arguments]
        return subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False
        )

    return run_there


def test_commands_work_outside_the_checkout(run: Run) -> None:
    """The commands find the schemas, the templates, the catalog and the findings' pages inside the package."""
    version = run("tpucfg", "--version")
    assert version.returncode == 0, version.stderr
    assert version.stdout.startswith("tpucfg ")

    rendered = run("tpucfg", "render", "--size", "v3-32")
    assert rendered.returncode == 0, rendered.stderr
    assert "acceleratorCount: 32" in rendered.stdout

    checked = run("tpucfg", "check")
    assert checked.returncode == 0, checked.stdout
    assert "tpucfg.yaml, 9 configs: " in checked.stdout

    schema = run("tpucfg", "schema")
    assert json.loads(schema.stdout)["required"], schema.stderr

    explained = run("tpucfg", "explain", "TPU021")
    assert explained.returncode == 0, explained.stderr
    assert "TPU021" in explained.stdout


EVERY_CONFIG = """
import sys
from jinja2 import Environment
from tpucfg.cli.app import run
from tpucfg.targets import TARGETS
run(["render", "--format", "yaml"])
for target in TARGETS:
    run(["render", "--target", target, "--env", "dev"])
print(sum(name.startswith("_jinja2_module_templates") for name in sys.modules) > 1)
"""


def test_compiled_templates_render_equal_configs(run: Run) -> None:
    """Compiled templates are used, and with another version of jinja2 the template files render equal configs."""
    ready = run("python", "-c", EVERY_CONFIG)
    assert ready.stdout.endswith("\nTrue\n"), ready.stderr

    package = Path(run("python", "-c", "import tpucfg; print(tpucfg.__path__[0])").stdout.strip())
    [compiled] = package.glob("templates/compiled-*")
    away = compiled.rename(compiled.with_name("compiled-0.0"))
    plain = run("python", "-c", EVERY_CONFIG)
    away.rename(compiled)

    assert plain.stdout == ready.stdout.replace("\nTrue\n", "\nFalse\n")
    assert {"vertex-ai", "cloud-tpu"} <= set(
        re.findall(r"^# Made by .*, target (\S+)\.$", plain.stdout, re.MULTILINE)
    )


def test_new_project_works_outside_the_checkout(run: Run) -> None:
    """A project that `init` creates passes `check`."""
    for name, options in (
        ("mnist", ()),
        ("jax", ("--trainer", "jax")),
        ("tensorflow", ("--trainer", "tensorflow")),
    ):
        created = run("tpucfg", "init", name, *options)
        assert created.returncode == 0, created.stderr
        assert ("trainer/Dockerfile" in created.stdout) == bool(options)

        checked = run("tpucfg", "check", "--spec", f"{name}/tpucfg.yaml")
        assert checked.returncode == 0, checked.stdout


def test_pulumi_comes_only_with_infra(run: Run) -> None:
    """The compiler does not depend on Pulumi."""
    missing = run("python", "-c", "import pulumi")

    assert "No module named 'pulumi'" in missing.stderr


@pytest.mark.telling
def test_stack_program_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """`tpucfg infra` works in a new project, and with the bundled program for a spec alone.

    Catches a file of the library or of the bundled program that the wheel does not contain.
    """
    assert not [name for name in _contents(wheel) if name.startswith("tpucfg/stacks/")]
    packages = tmp_path / "packages"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--target", str(packages), str(wheel)], check=True)

    def run_there(*arguments: str) -> str:
        """Run Python with the wheel and with Pulumi, which the environment of the tests has."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(packages)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    assert run_there("-c", "import tpucfg.stack; print(tpucfg.stack.__file__)").startswith(
        f"{packages}/"
    )
    run_there("-m", "tpucfg", "init", "mnist", "--infra")
    declared = run_there("-m", "tpucfg", "infra", "--spec", "mnist/tpucfg.yaml")
    shutil.copy(tmp_path / "mnist" / "tpucfg.yaml", tmp_path)

    assert declared.count("storage.Bucket ") == 2
    assert run_there("-m", "tpucfg", "infra") == declared
