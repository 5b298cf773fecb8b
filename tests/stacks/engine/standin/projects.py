"""What a stack runs on: the engine's surroundings, and one of the two doors to a cloud."""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from standin import google_api, language_host, provider
from standin.cloud import Cloud

ROOT = Path(__file__).resolve().parents[4]


@dataclass(frozen=True, slots=True)
class World:
    """A cloud, and the environment variables that lead the engine to it."""

    cloud: Cloud
    environment: dict[str, str]


@functools.cache
def find_engine() -> tuple[Path | None, str]:
    """Return the path of a usable `pulumi`, or None and the reason; builds nothing."""
    command = [sys.executable, str(ROOT / "tools" / "pulumi_engine.py"), "--find"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return (Path(found.stdout.strip()), "") if found.returncode == 0 else (None, found.stderr.strip())


def engine_environment(folder: Path, engine: Path) -> dict[str, str]:
    """Return what the engine needs to work in one folder, alone, and without asking anybody.

    Args:
        folder: holds the engine's home and the state.
        engine: the `pulumi` to run; it has to be the first on the PATH of this process too.
    """
    home, state = folder / "home", folder / "state"
    for path in (home, state):
        path.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.pathsep.join([str(engine.parent), os.environ["PATH"]]),
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": "for tests only",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "NO_COLOR": "1",
    }


@contextlib.contextmanager
def standin_world(cloud: Cloud, folder: Path, engine: Path) -> Iterator[World]:
    """Lead the engine to the cloud through the stand-in of the gcp plugin."""
    with provider.serving(cloud) as port:
        attach = {"PULUMI_DEBUG_PROVIDERS": f"gcp:{port}"}
        yield World(cloud, {**engine_environment(folder, engine), **attach})


def find_plugin() -> tuple[Path | None, str]:
    """Return the folder of Pulumi's plugins if it has the gcp plugin that the SDK asks for, or None and the reason."""
    wanted = version("pulumi-gcp")
    plugins = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
    if (plugins / f"resource-gcp-v{wanted}").is_dir():
        return plugins, ""
    return None, f"the gcp plugin is not installed: `pulumi plugin install resource gcp {wanted}`"


@contextlib.contextmanager
def plugin_world(cloud: Cloud, folder: Path, engine: Path, plugins: Path) -> Iterator[World]:
    """Lead the engine to the cloud through the real gcp plugin and the stand-in of Google's APIs."""
    environment = engine_environment(folder, engine)
    (folder / "home" / "plugins").symlink_to(plugins)
    with google_api.serving(cloud) as api:
        yield World(cloud, {**environment, **api.environment})


def with_language_host(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the environment in which `pulumi up` works: with Pulumi's host of Python programs, or one to stand in."""
    if shutil.which(language_host.NAME, path=environment["PATH"]):
        return environment
    return {**environment, "PATH": os.pathsep.join([str(language_host.install(folder)), environment["PATH"]])}
