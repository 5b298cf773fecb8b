"""Sentences about rungs whose fit is not known, and the condition of the gate, on made values."""

from pathlib import Path

import pytest

from fit_results import RESULT
from spec_factory import project, spec
from tpucfg.findings import Finding, Location
from tpucfg.fit.fit_file import FitFile, FitKey, Memory
from tpucfg.fit.fit_findings import fit_problems, known_fit_findings, known_text, unknown_fits_text
from tpucfg.fit.rung_fit import (
    MAX_SOURCE_BYTES,
    KnownFits,
    MemorySettings,
    ProgramFiles,
    RungFit,
    fit_command,
)

REFUSED = RESULT._replace(fits=False, memory=Memory(9 << 30, 7 << 30, exact=False))
ERROR = Finding.of("TPU109", "fit.json: broken", Location("results/fit.json"))


def fit(size: str, *changes: str, compiled: bool = True) -> RungFit:
    """Return a fit of dev."""
    return RungFit(FitKey("mnist", "dev", size), RESULT if compiled else None, changes)


def known(*fits: RungFit, findings: tuple[Finding, ...] = ()) -> KnownFits:
    """Return the fits of one file."""
    return KnownFits(
        FitFile(Path("results/fit.json"), {}, findings), {fit.key: fit for fit in fits}
    )


@pytest.mark.parametrize(
    ("fits", "text"),
    [
        ([fit("v2-8")], ""),
        (
            [fit("v2-8", compiled=False)],
            "dev: the fit of v2-8 is not known: v2-8 was never compiled",
        ),
        (
            [fit("v2-8", "--a", "fit.py"), fit("v2-32")],
            "dev: the fit of 1 of 2 rungs is not known: v2-8 was compiled before a change of --a, fit.py",
        ),
        (
            [fit("v2-8", "--a"), fit("v2-32", compiled=False), fit("v2-128", "--a")],
            (
                "dev: the fit of 3 of 3 rungs is not known: v2-8 and v2-128 were compiled before a change of --a; "
                "v2-32 was never compiled"
            ),
        ),
        (
            [fit(f"v2-{cores}", compiled=False) for cores in (8, 32, 128, 256, 512)],
            "dev: the fit of 5 of 5 rungs is not known: v2-8, v2-32, v2-128 and 2 more were never compiled",
        ),
        (
            [fit(f"v2-{cores}", f"--{cores}") for cores in (8, 32, 128, 256)],
            (
                "dev: the fit of 4 of 4 rungs is not known: v2-8 was compiled before a change of --8; v2-32 was "
                "compiled before a change of --32; v2-128 was compiled before a change of --128; and 1 other reason"
            ),
        ),
    ],
)
def test_rungs_that_are_not_known_share_a_sentence(fits: list[RungFit], text: str) -> None:
    """Rungs with one reason are named together, and a long list is cut."""
    assert unknown_fits_text(known(*fits), "dev") == text


def test_a_broken_file_is_one_finding() -> None:
    """No result of such a file counts, and the rungs without a result are no further findings."""
    fits = known(fit("v2-8", compiled=False), findings=(ERROR,))
    assert known_fit_findings(project(spec()), fits) == (ERROR,)
    (warning,) = known_fit_findings(project(spec()), fits, level="warning")
    assert warning.level == "warning"


def test_the_gate_has_a_problem_for_each_verdict() -> None:
    """Only a current result of a step that fits opens the gate."""
    values = MemorySettings(2, 16, "grad_accum", sees_accumulation=True, can_divide_model=False)
    refused = RungFit(FitKey("mnist", "dev", "v2-32"), REFUSED, memory_settings=values)
    fits = known(fit("v2-8"), refused, fit("v2-128", "--a"), fit("v2-256", compiled=False))
    problems = fit_problems(fits, "dev", ["v2-8", "v2-32", "v2-128", "v2-256", "v2-512"])
    assert {size: problem.reason for size, problem in problems.items()} == {
        "v2-32": "its training step does not fit: at least 9 of 7 GiB",
        "v2-128": "its training step was compiled before a change of --a",
        "v2-256": "its training step was never compiled",
        "v2-512": "the spec names no training step for it",
    }
    assert (
        problems["v2-32"].fix
        == "set overrides.v2-32.grad_accum to 4 or more, and compile v2-32 again"
    )


def test_a_broken_file_is_a_problem_of_each_rung() -> None:
    """None of its results counts."""
    problems = fit_problems(known(fit("v2-8"), findings=(ERROR,)), "dev", ["v2-8"])
    assert problems["v2-8"].reason == "results/fit.json cannot be read"


def test_a_result_of_this_run_is_not_called_committed() -> None:
    """Only a result that a job of the same run made is trusted."""
    assert known_text(fit("v2-8")) == "2 of 7 GiB of HBM a device, as committed in results/fit.json"
    assert known_text(fit("v2-8")._replace(is_trusted=True)) == "2 of 7 GiB of HBM a device"
    assert known_text(fit("v2-8", "--a")) == "not known: compiled before a change of --a"


def test_the_command_names_what_is_needed() -> None:
    """The command has the environments unless they are all that have one of the sizes, and each size."""
    environments = {
        "dev": {"project": "my-project-dev", "region": "us-central1"},
        "prod": {"project": "my-project-prod", "region": "us-central1", "sizes": ["v2-8"]},
    }
    both = project(spec(sizes=["v2-8", "v2-32"], environments=environments))
    assert fit_command(both, ["dev"], "v2-8") == "tpucfg fit --env dev --size v2-8"
    assert fit_command(both, ["dev"], "v2-32") == "tpucfg fit --size v2-32"
    assert (
        fit_command(both, ["dev"], "v2-8", "v2-32")
        == "tpucfg fit --env dev --size v2-8 --size v2-32"
    )
    assert fit_command(both, ["dev", "prod"], "v2-8") == "tpucfg fit --size v2-8"
    assert fit_command(both, ["dev"]) == "tpucfg fit --env dev"


def test_a_large_file_is_hashed_a_few_times_only(tmp_path: Path) -> None:
    """A result that names one large file by many paths costs a bounded time: beyond 256 MiB, no file has a hash."""
    (tmp_path / "weights.py").write_bytes(b"0" * MAX_SOURCE_BYTES)
    hashes = ProgramFiles(tmp_path).hashes(f"{'./' * number}weights.py" for number in range(100))
    assert len(hashes) == (256 << 20) // MAX_SOURCE_BYTES
