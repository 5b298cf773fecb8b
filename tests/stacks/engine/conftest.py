"""Fixtures: the real Pulumi engine, and a stand-in cloud for it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from standin import projects
from standin.cloud import Cloud
from standin.engine import NewStack, Program, Stack, collect_abandoned_programs, create_stack
from standin.projects import World

from required import REQUIRED

PLUGIN = "plugin"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests whose engine or plugin is missing, with one reason per file."""
    for item in items:
        reason = _skip_reason(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _skip_reason(item: pytest.Item) -> str:
    # `new_stack` requests its world at run time, so `fixturenames` may not contain it.
    if {"engine", "new_stack"}.isdisjoint(getattr(item, "fixturenames", ())):
        return ""
    path, reason = projects.find_engine()
    if path is None and "engine" not in REQUIRED:
        return reason
    callspec = getattr(item, "callspec", None)
    plugins, reason = projects.find_plugin()
    needs_plugin = callspec is not None and callspec.params.get("world") == PLUGIN
    return reason if needs_plugin and plugins is None and PLUGIN not in REQUIRED else ""


@pytest.fixture(scope="session")
def engine() -> Iterator[Path]:
    """Return the tests' `pulumi` binary, after adding its folder to the front of the PATH."""
    path, reason = projects.find_engine()
    assert path, reason
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(path.parent), prepend=os.pathsep)
        yield path


@pytest.fixture
def cloud() -> Cloud:
    """Return a cloud with one empty project."""
    return Cloud({"acme-dev": 123456789012})


@pytest.fixture(params=["standin", PLUGIN])
def world(
    request: pytest.FixtureRequest, cloud: Cloud, engine: Path, tmp_path: Path
) -> Iterator[World]:
    """Connect the cloud through the stand-in of the gcp plugin, and through the real plugin if it is installed."""
    folder = tmp_path / "pulumi"
    if request.param != PLUGIN:
        with projects.standin_world(cloud, folder, engine) as world:
            yield world
        return
    plugins, reason = projects.find_plugin()
    assert plugins, reason
    with projects.plugin_world(cloud, folder, engine, plugins) as world:
        yield world


@pytest.fixture
def standin_world(cloud: Cloud, engine: Path, tmp_path: Path) -> Iterator[World]:
    """Connect the cloud through the stand-in of the gcp plugin only."""
    with projects.standin_world(cloud, tmp_path / "pulumi", engine) as world:
        yield world


@pytest.fixture
def new_stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewStack]:
    """Return a function that creates stacks in the world of the test."""
    name = "world" if "world" in request.fixturenames else "standin_world"
    world: World = request.getfixturevalue(name)

    def make(
        program: Program,
        *,
        name: str = "dev",
        config: Mapping[str, object] | None = None,
    ) -> Stack:
        folder = tmp_path / f"stack-{name}"
        folder.mkdir(exist_ok=True)
        return create_stack(
            program, folder=folder, environment=world.environment, name=name, config=config
        )

    yield make
    collect_abandoned_programs()
