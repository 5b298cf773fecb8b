"""The real Pulumi engine for tests, and a cloud to run it against."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest
from standin import projects
from standin.cloud import Cloud
from standin.engine import Program, Stack, collect_refused_programs, create_stack
from standin.projects import World

REQUIRED = "TPUCFG_REQUIRE_ENGINE"
"""Set to 1 where a missing engine is a failure, not a reason to skip."""
PLUGIN = "plugin"


class NewStack(Protocol):
    """Makes a stack in a folder of its own."""

    def __call__(
        self,
        program: Program,
        *,
        name: str = "dev",
        config: Mapping[str, object] | None = None,
        folder: Path | None = None,
    ) -> Stack:
        """Take what `create_stack` takes; without a folder, the stack has one of its own."""


@pytest.fixture(scope="session")
def engine() -> Iterator[Path]:
    """The `pulumi` that the tests run, first on the PATH."""
    path, reason = projects.find_engine()
    if path is None:
        (pytest.fail if os.environ.get(REQUIRED) == "1" else pytest.skip)(reason)
        raise AssertionError
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(path.parent), prepend=os.pathsep)
        yield path


@pytest.fixture
def cloud() -> Cloud:
    """A Google with one empty project."""
    return Cloud({"acme-dev": 123456789012})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the runs behind the real plugin where it is not installed, in one line for all of a file."""
    plugins, reason = projects.find_plugin()
    for item in items:
        callspec = getattr(item, "callspec", None)
        if plugins is None and callspec and callspec.params.get("world") == PLUGIN:
            item.add_marker(pytest.mark.skip(reason=reason))


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
