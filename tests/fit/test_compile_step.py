"""The worker of `tpucfg fit`, as a process in a Python with the TPU compiler, on programs that are right and wrong."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from compile_worker import PROGRAMS, Slice, compile_in_new_process, compile_step

V5E: Final = Slice("v5e:2x2", 4)
WANTED: Final = (
    "it has to return (jitted, args) or (jitted, args, kwargs), with jitted from jax.jit"
)


@pytest.mark.telling
def test_a_program_has_its_own_modules_and_output(tpu_python: str) -> None:
    """A module with the name of one of the worker's is found, and what it prints is no answer.

    It finds a worker whose own modules, imports or output get in the way of the user's program.
    """
    outcome = compile_in_new_process(
        tpu_python, "hlo_module:right", V5E, flags={"a": "1", "b": None, "c": ["x", "y"]}
    )

    assert outcome.status == 0
    assert outcome.phases == ["import", "trace", "lower", "compile"]
    assert outcome.stdout == "a line on stdout\n[('a', '1'), ('b', None), ('c', ['x', 'y'])] []\n"
    result = outcome.result
    assert result["files"] == ["helpers/sizes.py", "hlo_module.py"]
    assert (result["fits"], result["hbm"]["exact"], result["known"]) == (True, True, False)
    assert result["flops"] == 2 * 256**3
    assert result["forecast"]["seconds"] > 0
    assert result["state_bytes"] == 256 * 256 * 4


def test_what_cannot_be_read_costs_its_figure_only(tpu_python: str) -> None:
    """With texts of another form, the memory and the verdict are as ever, and what is missing has a name."""
    readable, result = (
        compile_step(tpu_python, f"hlo_module:{step}", V5E).result
        for step in ("right", "unreadable")
    )

    assert (result["fits"], result["hbm"]) == (readable["fits"], readable["hbm"])
    assert (result["flops"], result["forecast"], result["state_bytes"]) == (0, None, None)
    assert result["uncounted"] == ["all FLOPs"]


@pytest.mark.parametrize("step", ["without_batch", "without_state"])
def test_an_array_without_elements_is_an_error(tpu_python: str, step: str) -> None:
    """A batch of no examples would fit everywhere."""
    error = compile_step(tpu_python, f"hlo_module:{step}", V5E).error

    assert error["kind"] == "wrong-return"
    assert "the step has an array without elements, tensor<0x" in error["message"]


def test_a_step_with_arrays_on_the_host_is_not_reliable(tpu_python: str) -> None:
    """Neither where it fits nor where the compiler refuses it."""
    small, large = (
        compile_step(
            tpu_python, "hlo_module:with_weights_on_host", Slice("v6e:2x2", 4), flags={"rows": rows}
        ).result
        for rows in ("256", "262144")
    )

    assert (small["fits"], small["forecast"]["is_reliable"]) == (True, False)
    assert (large["fits"], large["forecast"]["is_reliable"]) == (False, False)


def test_a_known_program_is_not_compiled(tpu_python: str) -> None:
    """The hash of a program is equal in two processes, and one of a known program ends before it is compiled."""
    first = compile_step(tpu_python, "hlo_module:right", V5E).result
    known = {key: first[key] for key in ("jax", "libtpu", "stablehlo")}
    again = compile_step(
        tpu_python, "hlo_module:right", V5E, known=[{**known, "libtpu": "other"}, known]
    )
    other = compile_step(tpu_python, "hlo_module:right", V5E, known=[{**known, "libtpu": "other"}])

    assert again.phases == ["import", "trace", "lower"]
    assert again.result == {
        key: first[key] for key in ("jax", "libtpu", "python", "files", "stablehlo")
    } | {"known": True}
    assert "compile" in other.phases


def test_options_of_the_compiler_are_part_of_the_hash(tpu_python: str) -> None:
    """A step that differs from a known one only in the options of its jitted function is another step."""
    hashes = [
        compile_step(tpu_python, "hlo_module:with_options", V5E, flags={"options": options}).result[
            "stablehlo"
        ]
        for options in (
            {},
            {"xla_tpu_scoped_vmem_limit_kib": "20000"},
            {"xla_tpu_scoped_vmem_limit_kib": "30000"},
        )
    ]

    assert len(set(hashes)) == 3


@pytest.mark.parametrize("step", ["with_kwargs", "with_in_shardings", "with_thread", "in_mesh"])
def test_steps_of_other_forms_compile(tpu_python: str, step: str) -> None:
    """Arrays and numbers are arguments too, shardings may be those of the function, and a thread may remain."""
    assert compile_step(tpu_python, f"hlo_module:{step}", V5E).result["fits"]


def test_a_step_for_one_device_needs_no_sharding(tpu_python: str) -> None:
    """On a slice of one device, nothing is ambiguous: the step is compiled for that device, not for the processor."""
    chip = Slice("v5e:1x1", 1, {"chips_per_host_bounds": [1, 1, 1]})
    result = compile_step(tpu_python, "hlo_module:unplaced", chip).result

    assert result["fits"]
    assert result["flops"] == 2 * 8**3
    assert result["forecast"]["seconds"] > 0


def test_settings_of_the_program_do_no_harm(tpu_python: str, tmp_path: Path) -> None:
    """A program may select TPUs, use a cache, leave its folder and replace stdout; nothing is written to the cache."""
    outcome = compile_step(
        tpu_python, "hlo_module:with_settings", V5E, flags={"cache": str(tmp_path)}
    )

    assert outcome.status == 0
    assert outcome.result["fits"]
    assert outcome.result["files"] == ["helpers/sizes.py", "hlo_module.py"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("step", "kind", "message", "function"),
    [
        ("exits", "step-failed", "the program called sys.exit(goodbye)", "exits"),
        ("interrupts", "step-failed", "KeyboardInterrupt", "interrupts"),
        (
            "unprintable",
            "step-failed",
            "UnprintableError: (its text cannot be shown)",
            "unprintable",
        ),
        pytest.param(
            "fails_in_jit",
            "step-failed",
            "TypeError: dot_general requires contracting dimensions",
            "step",
            marks=pytest.mark.telling,
        ),
        ("exits_in_jit", "step-failed", "the program called sys.exit(3)", "<lambda>"),
        ("nothing", "wrong-return", f"`nothing` returned None; {WANTED}", None),
        (
            "not_jitted",
            "wrong-return",
            "`not_jitted` returned is the function `_square` without jax.jit",
            None,
        ),
        ("compiled", "wrong-return", "`compiled` returned is a value of type Lowered", None),
        (
            "one_argument",
            "wrong-return",
            "is a value of type ShapeDtypeStruct; it has to be the tuple",
            None,
        ),
        (
            "wrong_kwargs",
            "wrong-return",
            "is a list of 1; it has to be a dict of keyword arguments",
            None,
        ),
        ("on_cpu", "wrong-return", "argument args[0]['w'] is placed on other devices (cpu)", None),
        ("for_cpu", "wrong-return", "argument args[0] is placed on other devices (cpu)", None),
        ("unplaced", "wrong-return", "the step runs on 1 of the slice's 4 devices", None),
        ("on_some", "wrong-return", "the step runs on 2 of the slice's 4 devices", None),
        ("NUMBER", "no-function", "`NUMBER` is not a function in module `hlo_module`", None),
        ("absent", "no-function", "`absent` does not exist in module `hlo_module`", None),
    ],
)
def test_wrong_steps_are_explained(
    tpu_python: str, step: str, kind: str, message: str, function: str | None
) -> None:
    """The error names what is wrong, and the innermost of its lines is one of the user's.

    It finds frames of JAX or of the worker in a message, and a JAX that raises other errors than those that are read.
    """
    error = compile_step(tpu_python, f"hlo_module:{step}", V5E).error

    assert error["kind"] == kind
    assert message in error["message"]
    if function is None:
        assert error["frames"] == []
    else:
        frame = error["frames"][-1]
        source = (PROGRAMS / "hlo_module.py").read_text(encoding="utf-8").splitlines()
        assert (frame["file"], frame["name"]) == ("hlo_module.py", function)
        assert frame["code"] == source[frame["line"] - 1].strip()


def test_errors_are_bounded(tpu_python: str) -> None:
    """Neither a long message nor a deep stack makes a large answer."""
    long = compile_step(tpu_python, "hlo_module:long", V5E).error
    deep = compile_step(tpu_python, "hlo_module:deep", V5E).error

    assert len(long["message"]) == 4_000
    assert len(deep["frames"]) == 20


@pytest.mark.parametrize(
    ("text", "kind", "message", "line"),
    [
        ("import absent_module\n", "import-failed", "No module named 'absent_module'", 1),
        ("x = 1\nraise SystemExit(4)\n", "import-failed", "the program called sys.exit(4)", 2),
        ("x = 1\n\ny = (\n", "import-failed", "SyntaxError: '(' was never closed", 3),
        ("import jax\njax.absent\n", "import-failed", "module 'jax' has no attribute 'absent'", 2),
    ],
)
def test_a_module_that_cannot_be_imported(
    tpu_python: str, tmp_path: Path, text: str, kind: str, message: str, line: int
) -> None:
    """The error has the line of the user's module."""
    (tmp_path / "fit.py").write_text(text, encoding="utf-8")
    error = compile_step(tpu_python, "fit:abstract_step", V5E, folder=tmp_path).error

    assert error["kind"] == kind
    assert message in error["message"]
    assert [(frame["file"], frame["line"]) for frame in error["frames"]] == [("fit.py", line)]


@pytest.mark.parametrize("module", ["absent", "helpers.absent", "absent.module"])
def test_an_absent_module(tpu_python: str, module: str) -> None:
    """A module that does not exist is not one that failed."""
    error = compile_step(tpu_python, f"{module}:abstract_step", V5E).error

    assert error["kind"] == "no-module"
    assert error["frames"] == []


@pytest.mark.parametrize(
    ("slice_", "message"),
    [
        (Slice("v5e:2x2", 8), "topology v5e:2x2 has 4 devices, and the slice 8"),
        (Slice("v99:2x2", 4), "topology v99:2x2: "),
        (Slice("v5e:2x2", 4, {"chips_per_host_bounds": [3, 1, 1]}), "topology v5e:2x2: "),
    ],
)
def test_a_slice_that_libtpu_does_not_know(tpu_python: str, slice_: Slice, message: str) -> None:
    """The error names the topology."""
    error = compile_step(tpu_python, "hlo_module:right", slice_).error

    assert error["kind"] == "no-topology"
    assert message in error["message"]


def test_a_python_without_the_packages(tmp_path: Path) -> None:
    """A Python without jax, with an old one, and with one but no libtpu."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    python = str(tmp_path / "venv" / "bin" / "python")
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, version in ((old, (0, 6, 2)), (new, (0, 10, 2))):
        folder.mkdir()
        text = f"__version_info__ = {version}\n__version__ = {'.'.join(map(str, version))!r}\n"
        (folder / "jax.py").write_text(text, encoding="utf-8")

    errors = [
        compile_in_new_process(python, "hlo_module:right", V5E, PYTHONPATH=str(path)).error
        for path in ("/nonexistent", old, new)
    ]

    assert [error["kind"] for error in errors] == ["no-jax", "old-jax", "no-libtpu"]
    assert "jax 0.6.2 is too old: version 0.7 or newer is required" in errors[1]["message"]
