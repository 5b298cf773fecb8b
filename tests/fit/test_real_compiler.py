"""`tpucfg fit` with the real TPU compiler: a ladder from end to end, a repeated run, and the mistakes of users."""

import json
import resource
import subprocess
from pathlib import Path

import pytest

from false_python import Folder

STEPS = '''\
"""Training steps of a matrix product."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def abstract_step(devices, flags):
    """Return a step that fits."""
    return _product(devices, int(flags["batch_size"]), 1024)


def large_step(devices, flags):
    """Return a step that does not fit."""
    return _product(devices, int(flags["batch_size"]), 1 << 17)


def broken_step(devices, flags):
    """Raise an exception."""
    print("starting")
    return _product(devices, int(flags["microbatch_size"]), 1024)


def unequal_step(devices, flags):
    """Return a step whose batch does not divide over the devices; tracing it fails."""
    x, w = _product(devices, 256, 1024)[1]
    return jax.jit(lambda x, w: x @ w.T @ x), (x, w)


def crashing_step(devices, flags):
    """Crash in C."""
    import ctypes

    ctypes.string_at(0)


def _product(devices, batch, width):
    mesh = Mesh(np.array(devices), ("data",))
    x = jax.ShapeDtypeStruct((batch, width), jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec("data")))
    w = jax.ShapeDtypeStruct((width, width), jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec()))
    return jax.jit(lambda x, w: jnp.tanh(x @ w).sum()), (x, w)
'''
ONE = ("--size", "v5litepod-16")


@pytest.fixture
def real(folder: Folder, tpu_python: str) -> Folder:
    """Return a spec with three rungs, whose Python has the TPU compiler."""
    (folder.path / "step.py").write_text(STEPS)
    folder.spec(("./python", tpu_python), ("v5litepod-64]", "v5litepod-64, v5litepod-256]"))
    return folder


def processor_seconds() -> float:
    """Return the time of processors that ended processes have used: unlike that of a clock, it has no other work."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def change(folder: Folder, *replacements: tuple[str, str]) -> None:
    """Replace parts of the spec."""
    path = folder.path / "tpucfg.yaml"
    text = path.read_text()
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


@pytest.mark.telling
def test_a_ladder_from_end_to_end(real: Folder) -> None:
    """Three rungs have their memory and work; a comment changes no step, and a second run compiles nothing.

    It finds a request that the worker reads otherwise than tpucfg writes it, and a hash that differs between processes.
    """
    status, out, err = real.fit("--format", "json")
    assert status == 0, err
    (environment,) = json.loads(out)["environments"]
    assert [rung["devices"] for rung in environment["rungs"]] == [16, 64, 256]
    for rung in environment["rungs"]:
        assert rung["flops"] == 2 * 256 * (rung["devices"] // 16) * 1024 * 1024
        assert rung["hbm"]["available"] == round(15.75 * 2**30)
        # Each device has all weights, of 2 MiB.
        assert 2 << 20 < rung["hbm"]["used"] < 8 << 20
        assert rung["model"]["seconds"] > rung["least_step_seconds"]
        assert not rung["unchanged"]
    before = real.file()
    hashes = [result.pop("files") for result in before]
    assert [files.keys() for files in hashes] == [{"step.py"}] * 3
    (real.path / "step.py").write_text(f"# A comment.\n{STEPS}")
    start = processor_seconds()
    status, _, err = real.fit()
    seconds = processor_seconds() - start
    assert status == 0
    assert err.count("unchanged") == 3
    after = real.file()
    assert all(result.pop("files") != files for result, files in zip(after, hashes, strict=True))
    assert after == before
    assert seconds < 30, "a repeated run takes less than 10 s of processors"


def test_flags_that_the_program_sets_itself_make_another_step(real: Folder) -> None:
    """They are no part of the StableHLO, and change the memory that the compiler grants."""
    for limit in (8000, 4000):
        line = f'import os; os.environ["LIBTPU_INIT_ARGS"] = "--xla_tpu_max_hbm_size_mib={limit}"\n'
        (real.path / "step.py").write_text(line + STEPS)
        status, _, err = real.fit(*ONE)
        assert status == 0, err
        assert "unchanged" not in err
        assert real.file()[0]["hbm"]["available"] == pytest.approx(limit << 20, rel=0.01)
    assert "unchanged" in real.fit(*ONE)[2]


@pytest.mark.telling
def test_a_step_that_does_not_fit(real: Folder) -> None:
    """The refusal comes in seconds, with the least amount that the step would need.

    It finds a refusal in other words, which would be an error of the program, and figures that are read wrongly.
    """
    change(real, ("abstract_step", "large_step"))
    start = processor_seconds()
    status, out, err = real.fit(*ONE)
    assert status == 1
    assert processor_seconds() - start < 30, "a refusal takes less than 10 s of processors"
    assert (
        "error[TPU105]: the training step does not fit on v5litepod-16: a device needs at least 32"
        in err
    )
    assert "and the compiler grants 15.75" in err
    assert "does not fit" in out


@pytest.mark.telling
def test_a_misspelled_flag_gets_the_compilers_suggestion(real: Folder) -> None:
    """The real parser names the flag that was meant.

    It finds flags of the job that do not reach the compiler, and a libtpu whose words are not understood.
    """
    change(
        real,
        ("  fit:", "  xla_flags: {v5e: [--xla_tpu_enable_async_collective_fusionn=true]}\n  fit:"),
    )
    status, _, err = real.fit(*ONE)
    assert status == 1
    assert "tpucfg.yaml:9:21: error[TPU112]" in err
    assert "help: write --xla_tpu_enable_async_collective_fusion=true," in err


@pytest.mark.parametrize(
    ("function", "id_", "texts"),
    [
        ("abstract_stepp", "TPU116", ["set trainer.fit.step to step:abstract_step, or define"]),
        (
            "broken_step",
            "TPU117",
            ["KeyError: 'microbatch_size'", "in broken_step: return _product(devices, int(flags["],
        ),
        ("unequal_step", "TPU117", ["step.py:"]),
        (
            "crashing_step",
            "TPU118",
            ["signal 11 (Segmentation fault), before it gave a result, while the function ran"],
        ),
    ],
)
def test_a_mistake_in_the_program_is_shown_with_its_lines(
    real: Folder, function: str, id_: str, texts: list[str]
) -> None:
    """The finding has the program's own lines, and none of tpucfg's or JAX's."""
    change(real, ("abstract_step", function))
    status, _, err = real.fit(*ONE)
    assert status == 1
    assert f"error[{id_}]" in err
    assert [text for text in texts if text not in err] == [], err
    if id_ == "TPU117":
        assert "compile_step.py" not in err
        assert "site-packages" not in err


def test_a_python_without_jax_gets_the_command(
    real: Folder, tpu_python: str, tmp_path: Path
) -> None:
    """The command installs JAX into the Python that the spec names."""
    subprocess.run([tpu_python, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    change(real, (tpu_python, "bare/bin/python"))
    status, _, err = real.fit(*ONE)
    assert status == 1
    assert "error[TPU114]: bare/bin/python cannot import JAX: ModuleNotFoundError" in err
    assert "help: bare/bin/python -m pip install 'jax[tpu]'" in err
