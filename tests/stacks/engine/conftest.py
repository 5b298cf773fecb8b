"""The real Pulumi engine for tests, and a cloud to run it against."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from standin import projects
from standin.cloud import Cloud
from standin.engine import NewStack, Program, Stack, collect_refused_programs, create_stack
from standin.projects import World

PLUGIN = "plugin"
REQUIRE_ENGINE, REQUIRE_PLUGIN = "TPUCFG_REQUIRE_ENGINE", "TPUCFG_REQUIRE_PLUGIN"
"""Set to 1 where a missing engine, a missing plugin, is a failure and not a reason to skip."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs an engine or a plugin that is not there, in one line for all of a file."""
    for item in items:
        reason = _lacks(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _lacks(item: pytest.Item) -> str:
    # A stack asks for its world only while it is made, so that the world's own needs do not show here.
    if {"engine", "new_stack"}.isdisjoint(getattr(item, "fixturenames", ())):
        return ""
    path, reason = projects.find_engine()
    if path is None and os.environ.get(REQUIRE_ENGINE) != "1":
        return reason
    callspec = getattr(item, "callspec", None)
    plugins, reason = projects.find_plugin()
    wanted = callspec is not None and callspec.params.get("world") == PLUGIN
    return reason if wanted and plugins is None and os.environ.get(REQUIRE_PLUGIN) != "1" else ""


@pytest.fixture(scope="session")
def engine() -> Iterator[Path]:
    """The `pulumi` that the tests run, first on the PATH."""
    path, reason = projects.find_engine()
    assert path, reason
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(path.parent), prepend=os.pathsep)
        yield path


@pytest.fixture
def cloud() -> Cloud:
    """A Google with one empty project."""
    return Cloud({"acme-dev": 123456789012})


@pytest.fixture(params=["standin", PLUGIN])
def world(request: pytest.FixtureRequest, cloud: Cloud, engine: Path, tmp_path: Path) -> Iterator[World]:
    """The cloud behind the stand-in of the gcp plugin, and once more behind the plugin itself where it is installed."""
    folder = tmp_path / "pulumi"
    if request.param != PLUGIN:
        with projects.standin_world(cloud, folder, engine) as made:
            yield made
        return
    plugins, reason = projects.find_plugin()
    assert plugins, reason
    with projects.plugin_world(cloud, folder, engine, plugins) as made:
        yield made


@pytest.fixture
def standin_world(cloud: Cloud, engine: Path, tmp_path: Path) -> Iterator[World]:
    """The cloud behind the stand-in of the gcp plugin only."""
    with projects.standin_world(cloud, tmp_path / "pulumi", engine) as made:
        yield made


@pytest.fixture
def new_stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStack]:
    """Makes stacks in the world that the test asked for."""
    name = "world" if "world" in request.fixturenames else "standin_world"
    world: World = request.getfixturevalue(name)

    def make(
        program: Program,
        *,
        name: str = "dev",
        config: Mapping[str, object] | None = None,
        folder: Path | None = None,
    ) -> Stack:
        folder = folder or tmp_path / f"stack-{name}"
        folder.mkdir(exist_ok=True)
        return create_stack(program, folder=folder, environment=world.environment, name=name, config=config)

    yield make
    collect_refused_programs()
