"""`trainer.fit.python: image`: a compilation inside an image of the tests' own making, by a docker of their own."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from false_python import Folder
from process import COMMAND
from required import missing

IMAGE: Final = "registry.example/acme/chat"
PACKAGES: Final = (
    "jax",
    "jaxlib",
    "libtpu",
    "ml_dtypes",
    "numpy",
    "numpy.libs",
    "opt_einsum",
    "scipy",
    "scipy.libs",
)
STEP: Final = '''\
import os
import urllib.request

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def abstract_step(devices, flags):
    """Return a product; the folder cannot be written, and nothing can be reached."""
    print("printed to stdout")
    for attempt in (lambda: open("written", "w"), lambda: urllib.request.urlopen("http://127.0.0.1:9/", timeout=5)):
        try:
            attempt()
        except OSError:
            continue
        raise RuntimeError("the container can write, or reach something")
    mesh = Mesh(np.array(devices), ("data",))
    x = jax.ShapeDtypeStruct((256, 1024), jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec("data")))
    w = jax.ShapeDtypeStruct((1024, 1024), jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec()))
    return jax.jit(lambda x, w: (x @ w).sum()), (x, w)
'''
_NOT_NEEDED: Final = frozenset(
    ("site-packages", "test", "idlelib", "ensurepip", "lib2to3", "tkinter", "turtledemo")
)
"""Folders of Python's library that no program of these tests imports; `config-3…` has a library to link with."""
ONE: Final = ("--size", "v5litepod-16")


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a daemon, and return the value of DOCKER_HOST; skip the test where that is not possible."""
    if os.geteuid() or not (shutil.which("dockerd") and shutil.which("docker")):
        missing("docker", "a daemon of docker needs root and the package docker.io")
    folder = tmp_path_factory.mktemp("docker")
    host = f"unix://{folder}/socket"
    options = [
        "--iptables=false",
        "--ip6tables=false",
        "--bridge=none",
        "--storage-driver=vfs",
        f"--host={host}",
    ]
    roots = [f"--data-root={folder}/data", f"--exec-root={folder}/run", f"--pidfile={folder}/pid"]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(["dockerd", *options, *roots], stdout=log, stderr=log)
    try:
        while subprocess.run(
            ["docker", "--host", host, "info"], capture_output=True, check=False
        ).returncode:
            assert daemon.poll() is None, (folder / "log").read_text()
            time.sleep(0.2)
        yield host
    finally:
        daemon.terminate()
        daemon.wait(60)


@pytest.fixture
def in_image(folder: Folder, docker: str, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Return a spec whose step is compiled in its image."""
    monkeypatch.setenv("DOCKER_HOST", docker)
    folder.spec(
        ("python: ./python", "python: image"),
        ("us-docker.pkg.dev/acme/train/chat:1.0", f"{IMAGE}:1"),
        ("sizes: [v5litepod-16, v5litepod-64]", "sizes: [v5litepod-16]"),
    )
    return folder


def python_files(python: str, *packages: Path) -> list[str]:
    """Return the files of a Python with packages, and the libraries of the system that it needs."""
    places = [
        python,
        "-c",
        "import os, sys; print(sys.base_prefix); print(os.path.dirname(os.__file__))",
    ]
    prefix, library = subprocess.run(
        places, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    program = Path(prefix, "bin", "python3")
    native = [
        *Path(library).glob("lib-dynload/*.so"),
        *(so for path in packages for so in path.rglob("*.so")),
    ]
    linked = subprocess.run(
        ["ldd", program, *native], capture_output=True, text=True, check=False
    ).stdout.split()
    standard = [
        path
        for path in Path(library).iterdir()
        if path.name not in _NOT_NEEDED and not path.name.startswith("config-")
    ]
    shared = {
        word
        for word in linked
        if word.startswith("/") and not word.endswith(":") and "site-packages" not in word
    }
    return [str(path) for path in (program, *standard, *sorted(shared), *packages)]


def make_image(name: str, files: list[str], path: str) -> None:
    """Import a tree with these files of this machine as an image, whose PATH is the folder."""
    skipped = [f"--exclude={part}" for part in ("__pycache__", "tests")]
    change = ["--change", f"ENV PATH={path}"]
    with subprocess.Popen(
        ["tar", "-c", "-P", "--dereference", *skipped, *files], stdout=subprocess.PIPE
    ) as tar:
        result = subprocess.run(
            ["docker", "import", *change, "-", name],
            stdin=tar.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (result.returncode, tar.returncode) == (0, 0), result.stderr


def is_container_left() -> bool:
    """Return True if a container is still there after half a minute, in which docker removes one that has ended."""
    command = ["docker", "ps", "--all", "--quiet"]
    for _ in range(60):
        if not subprocess.run(command, capture_output=True, check=True).stdout:
            return False
        time.sleep(0.5)
    return True


@pytest.mark.system
def test_the_image_has_its_own_python(in_image: Folder) -> None:
    """Without JAX in it, the message names the image, and no container is left."""
    make_image(f"{IMAGE}:1", python_files(sys.executable), f"{sys.base_prefix}/bin")

    status, _, errors = in_image.fit()

    assert status == 1
    assert f"error[TPU114]: {IMAGE}:1 cannot import JAX" in errors, errors
    assert f"help: build {IMAGE}:1 with: python3 -m pip install" in errors
    assert not is_container_left()


@pytest.mark.system
def test_a_missing_image_is_named(in_image: Folder) -> None:
    """The words are docker's."""
    in_image.spec(("python: ./python", "python: image"), ("chat:1.0", "chat:none"))
    status, _, errors = in_image.fit(*ONE)
    assert status == 1
    assert (
        "error[TPU114]: docker cannot start python3 in us-docker.pkg.dev/acme/train/chat:none: "
        in errors
    )


def test_a_machine_without_docker_gets_the_edit(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names what is missing."""
    folder.spec(("python: ./python", "python: image"))
    monkeypatch.setenv("PATH", str(folder.path))
    status, _, errors = folder.fit(*ONE)
    assert status == 1
    assert (
        "error[TPU114]: docker, which compiles the step in the job's image, is not on the PATH"
        in errors
    )
    assert "help: install docker, or set trainer.fit.python to a Python" in errors


@pytest.mark.tpu_compiler
def test_a_step_is_compiled_in_the_image(in_image: Folder, tpu_python: str) -> None:
    """The result keeps the image, and another image makes it outdated; a killed tpucfg leaves a container that ends."""
    environment = Path(tpu_python).parent.parent.resolve()
    (site,) = environment.glob("lib/python*/site-packages")
    packages = [site / name for name in PACKAGES if (site / name).exists()]
    versions = [
        path for name in ("jax", "jaxlib", "libtpu") for path in site.glob(f"{name}-*.dist-info")
    ]
    files = [
        *python_files(tpu_python, *packages, *versions),
        str(environment / "pyvenv.cfg"),
        str(environment / "bin" / "python3"),
    ]
    make_image(f"{IMAGE}:1", files, str(environment / "bin"))
    (in_image.path / "step.py").write_text(STEP)

    status, _, errors = in_image.fit()

    assert status == 0, errors
    (result,) = in_image.file()
    assert result["image"] == f"{IMAGE}:1"
    assert result["flops"] == 2 * 256 * 1024 * 1024
    assert not is_container_left()
    spec = in_image.path / "tpucfg.yaml"
    spec.write_text(spec.read_text().replace(f"{IMAGE}:1", f"{IMAGE}:2"))
    check = subprocess.run(
        [*COMMAND, "check"], capture_output=True, text=True, check=False, cwd=in_image.path
    )
    assert "trainer.image" in check.stdout
    assert json.loads((in_image.path / "results" / "fit.json").read_text())["results"] == [result]
