"""Settings, marks and fixtures for all tests."""

import gc
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, settings

from goldens import Goldens
from required import missing

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from playwright.sync_api import Browser
    from running_cluster import Cluster

    from repositories import Repository

TPU_PYTHON: Final = (
    Path(__file__).resolve().parent.parent / ".venv" / "tpu-compiler" / "bin" / "python"
)
"""Python of the environment that `make tpu-compiler` builds; TPUCFG_TPU_PYTHON replaces it."""
NAMES: Final = ("chromium", "chromium-browser", "google-chrome")

# No deadline: a slow machine must not fail a test.
# In CI, the same examples every time: an example that a change has nothing to do with must not stop it.
settings.register_profile(
    "tpucfg",
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
settings.load_profile("tpucfg")


KINDS: Final = frozenset(
    (
        "engine",
        "cluster",
        "browser",
        "official",
        "documents",
        "fuzz",
        "tpu_compiler",
        "trainer",
        "system",
        "shell",
        "programs",
        "workflow",
        "machine",
    )
)
"""The marks of slow tests; pyproject.toml describes each."""
FIXTURES: Final = {
    "engine": "engine",
    "cluster": "cluster",
    "new_stack": "engine",
    "chromium": "browser",
    "tensorflow": "trainer",
    "tpu_python": "tpu_compiler",
}
"""The mark of the tests that use a fixture, by the fixture's name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files."""
    parser.addoption(
        "--write-goldens",
        action="store_true",
        help="run only tests that compare with golden files, and write these instead",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> "Generator[None, object, object]":
    """Collect tests without looking for garbage, and leave them out of every later search: none of them is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m selects by mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use, and every test of a slow kind as slow.

    The tests that compile for TPUs form one group, which `--dist loadgroup` gives to one worker: a compilation uses
    all cores, and up to 1.5 GB of memory. Those of the cluster form one too, so that it is started once, and those of
    machines, which start side by side.
    """
    if config.getoption("--write-goldens"):
        items[:] = [item for item in items if "goldens" in getattr(item, "fixturenames", ())]
    for item in items:
        for fixture in FIXTURES.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(FIXTURES[fixture])
        if any(mark.name in KINDS for mark in item.iter_markers()):
            item.add_marker("slow")
        for name in ("tpu_compiler", "cluster", "machine"):
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def goldens(pytestconfig: pytest.Config) -> Goldens:
    """Return the golden files, which `--write-goldens` writes."""
    return Goldens(pytestconfig.getoption("--write-goldens"))


@pytest.fixture
def repository(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> "Repository":
    """Create a git repository with a project by `tpucfg init`, and make it the current folder.

    The indirect parameter has further arguments of `tpucfg init`.
    """
    from repositories import project

    created = project(tmp_path / "p", *getattr(request, "param", ()))
    monkeypatch.chdir(created.folder)
    capsys.readouterr()
    return created


@pytest.fixture(
    scope="module"
)  # not session: Playwright's event loop occupies the thread, and other tests need their own
def chromium() -> "Iterator[Browser]":
    """Start a headless browser; skip the test if none is installed."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("browser", f"Chromium is missing: none of {', '.join(NAMES)} is on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def tpu_python() -> str:
    """Return a Python with the TPU compiler; without it, skip the test, or fail if no test may be skipped."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("libtpu, which contains the TPU compiler, has builds for Linux on x86-64 only")
    python = Path(os.environ.get("TPUCFG_TPU_PYTHON") or TPU_PYTHON)
    if not any(python.parent.parent.glob("lib/*/site-packages/libtpu")):
        missing("tpu_compiler", "the TPU compiler is not installed: make tpu-compiler")
    return str(python)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Cluster]":
    """Run a cluster with JobSet, Kueue and nodes; without its programs, skip the test, or fail if it may not be."""
    import control_plane
    from add_ons import running_add_ons
    from running_cluster import running_api_server, running_controllers
    from simulated_nodes import running_nodes

    folder, programs = tmp_path_factory.mktemp("cluster"), cluster_programs()
    with (
        running_api_server(programs, folder) as running,
        running_controllers(running, folder),
        running_nodes(running, folder),
        running_add_ons(running, folder, control_plane.module_folder),
    ):
        yield running


def cluster_programs() -> Path:
    """Return the folder of the programs of a cluster."""
    import control_plane

    programs = control_plane.find()
    if programs is None:
        missing("cluster", "the cluster is not built: make cluster")
    return programs
