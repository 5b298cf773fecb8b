"""Environment of the engine, and the two ways to connect it to the cloud."""

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
    """A cloud, and the environment variables that connect the engine to it."""

    cloud: Cloud
    environment: dict[str, str]


@functools.cache
def find_engine() -> tuple[Path | None, str]:
    """Return the path of a usable `pulumi`, or None and the reason. Builds nothing."""
    command = [sys.executable, str(ROOT / "tools" / "pulumi_engine.py"), "--find"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return (
        (Path(process.stdout.strip()), "")
        if process.returncode == 0
        else (None, process.stderr.strip())
    )


def engine_environment(folder: Path, engine: Path) -> dict[str, str]:
    """Return the environment variables for the engine to run in one folder, without prompts.

    Args:
        folder: for the engine's home and the state.
        engine: the `pulumi` to run; it has to be first on the PATH of this process too.
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
    """Connect the engine to the cloud through the stand-in of the gcp plugin."""
    with provider.serving(cloud) as port:
        attach = {"PULUMI_DEBUG_PROVIDERS": f"gcp:{port}"}
        yield World(cloud, {**engine_environment(folder, engine), **attach})


def find_plugin() -> tuple[Path | None, str]:
    """Return Pulumi's plugin folder if it contains the gcp plugin of the SDK's version, or None and the reason."""
    required = version("pulumi-gcp")
    plugins = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
    if (plugins / f"resource-gcp-v{required}").is_dir():
        return plugins, ""
    return None, f"the gcp plugin is not installed: `pulumi plugin install resource gcp {required}`"


@contextlib.contextmanager
def plugin_world(cloud: Cloud, folder: Path, engine: Path, plugins: Path) -> Iterator[World]:
    """Connect the engine to the cloud through the real gcp plugin and the stand-in of Google's APIs."""
    environment = engine_environment(folder, engine)
    (folder / "home" / "plugins").symlink_to(plugins)
    with google_api.serving(cloud) as api:
        yield World(cloud, {**environment, **api.environment})


def with_language_host(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the environment for `pulumi up`: with Pulumi's host of Python programs, or a stand-in for it."""
    if shutil.which(language_host.NAME, path=environment["PATH"]):
        return environment
    return {
        **environment,
        "PATH": os.pathsep.join([str(language_host.install(folder)), environment["PATH"]]),
    }
