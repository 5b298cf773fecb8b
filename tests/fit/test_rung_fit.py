"""A result counts only for the job and the program that it was compiled from."""

from pathlib import Path
from typing import Any

import pytest

from fit_results import result_of
from spec_factory import planned, project, spec
from tpucfg.fit.fit_file import FitFile, FitResult
from tpucfg.fit.rung_fit import ProgramFiles, RungFit, rung_fit

SPEC = spec(
    trainer__fit={"step": "trainer.fit:abstract_step"},
    trainer__args={"width": 64},
    trainer__env={"A": "1"},
    trainer__xla_flags={"v2": ["--xla_a=1"]},
)


def fit_of(data: dict[str, Any], folder: Path, result: FitResult | None) -> RungFit:
    """Return the fit of a spec's first job with a result."""
    job = planned(data).jobs[0]
    file = FitFile(folder / "fit.json", {result.key: result} if result else {})
    fit = rung_fit(project(data), job, file, ProgramFiles(folder))
    assert fit is not None
    return fit


def compiled_result(folder: Path, **changes: Any) -> FitResult:
    """Return the result of SPEC's first job, with the program's files in the folder."""
    (folder / "trainer").mkdir(exist_ok=True)
    (folder / "trainer" / "fit.py").write_text("step = 1\n")
    files = ProgramFiles(folder).hashes(["trainer/fit.py"])
    return result_of(project(SPEC), planned(SPEC).jobs[0], files=files, **changes)


def test_a_spec_without_a_step_has_no_fit(tmp_path: Path) -> None:
    """There is nothing to compile, and nothing to report."""
    data = spec()
    assert (
        rung_fit(
            project(data), planned(data).jobs[0], FitFile(tmp_path, {}), ProgramFiles(tmp_path)
        )
        is None
    )


def test_a_rung_that_was_never_compiled_is_not_known(tmp_path: Path) -> None:
    """No result means that the fit is not known."""
    fit = fit_of(SPEC, tmp_path, None)
    assert (fit.verdict, fit.current) == ("not compiled", None)


@pytest.mark.parametrize(("fits", "verdict"), [(True, "fits"), (False, "does not fit")])
def test_a_result_of_the_same_job_counts(tmp_path: Path, fits: bool, verdict: str) -> None:
    """An unchanged job and program have the verdict of the compiler."""
    result = compiled_result(tmp_path, fits=fits)
    fit = fit_of(SPEC, tmp_path, result)
    assert (fit.verdict, fit.current, fit.changes) == (verdict, result, ())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"trainer__args": {"width": 128}}, "--width"),
        ({"trainer__args": {}}, "--width"),
        ({"training__batch_size": 2048}, "--batch_size"),
        ({"trainer__env": {"A": "1", "B": "2"}}, "env B"),
        ({"trainer__xla_flags": {"v2": ["--xla_a=2"]}}, "the XLA flags"),
        ({"trainer__fit": {"step": "trainer.other:step"}}, "trainer.fit.step"),
    ],
)
def test_a_changed_input_makes_a_result_outdated(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    """A result of other inputs does not count; the change is named."""
    names = {f"trainer__{key}": value for key, value in SPEC["trainer"].items()}
    fit = fit_of(spec(**{**names, **change}), tmp_path, compiled_result(tmp_path))
    assert (fit.verdict, fit.current, fit.changes) == ("outdated", None, (named,))


def test_another_environment_has_results_of_its_own(tmp_path: Path) -> None:
    """The python that compiles is no input: another environment of the machine makes no other program."""
    data = spec(**{f"trainer__{key}": value for key, value in SPEC["trainer"].items()})
    data["trainer"]["fit"]["python"] = "python3.12"
    assert fit_of(data, tmp_path, compiled_result(tmp_path)).verdict == "fits"


def test_a_changed_file_makes_a_result_outdated(tmp_path: Path) -> None:
    """A result of another version of the program does not count, and neither does one whose file is gone."""
    result = compiled_result(tmp_path)
    (tmp_path / "trainer" / "fit.py").write_text("step = 2\n")
    assert fit_of(SPEC, tmp_path, result).changes == ("trainer/fit.py",)
    (tmp_path / "trainer" / "fit.py").unlink()
    assert fit_of(SPEC, tmp_path, result).changes == ("trainer/fit.py",)


def test_many_changes_are_counted(tmp_path: Path) -> None:
    """Three changes of a kind are named, the others are counted."""
    data = spec(**{f"trainer__{key}": value for key, value in SPEC["trainer"].items()})
    data["trainer"]["args"] = dict.fromkeys("abcde", 1)
    assert fit_of(data, tmp_path, compiled_result(tmp_path)).changes == (
        "--width",
        "--a",
        "--b",
        "3 more",
    )
