"""Changes to the fits of two revisions, from folders with results and programs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from fit_results import GIB, result_of
from spec_changes import compiled_revision
from spec_factory import spec
from tpucfg.changes.facts import Risk
from tpucfg.changes.fits import FitChanges, RunFits, compute_fits
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.fit.fit_file import Compiler, FitFile, FitResult, Memory, fit_path, update_fit_file
from tpucfg.fit.rung_fit import ProgramFiles

STEP: Final = {"step": "trainer.fit:abstract_step"}
_V3: Final[dict[str, Any]] = {"sizes": ["v3-8"], "training__tuned_on": "v3-8"}
"""One rung, whose devices have 16 GiB."""
SPEC: Final = spec(trainer__fit=STEP, **_V3)
LARGER: Final = spec(trainer__fit=STEP, **_V3, training__batch_size=2048)
PROGRAM: Final = "trainer/fit.py"
NEW: Final = "dev: v3-8: its result in results/fit.json is new, as committed"
Amount = float | None
"""The memory of the step in GiB of 10; None for a rung without a result."""


def revision(
    folder: Path, data: Any, used: Amount, program: str = "step = 1\n", **changes: Any
) -> CompiledRevision:
    """Return a revision in a folder, with its program and a committed result."""
    compiled = compiled_revision(data)
    snapshot = compiled.snapshot._replace(spec=folder / "tpucfg.yaml")
    (folder / "trainer").mkdir(parents=True)
    (folder / PROGRAM).write_text(program)
    compiled = compiled._replace(snapshot=snapshot)
    if used is not None:
        fit_path(folder).parent.mkdir()
        update_fit_file(fit_path(folder), lambda: results(compiled, used, **changes))
    return compiled


def results(revision: CompiledRevision, used: float, **changes: Any) -> list[FitResult]:
    """Return a result for each job of a revision."""
    assert revision.project is not None
    files = ProgramFiles(revision.snapshot.spec.parent).hashes([PROGRAM])
    memory = Memory(int(used * GIB), 10 * GIB, exact=used <= 10)
    values = {"files": files, "fits": used <= 10, "memory": memory, **changes}
    return [result_of(revision.project, job, **values) for job in revision.jobs.values()]


def run_of(revision: CompiledRevision, used: float, **changes: Any) -> RunFits:
    """Return what a job of this run would have compiled."""
    by_key = {result.key: result for result in results(revision, used, **changes)}
    return RunFits(FitFile(Path("fit.json"), by_key, is_trusted=True))


def sentences(changes: FitChanges) -> list[tuple[str, Risk]]:
    """Return the sentences about the change, and those about this run."""
    return [
        (located.plain, located.statement.risk)
        for located in (*changes.statements, *changes.notices)
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (4, 5, []),
        (4, 4, []),
        (
            4,
            20,
            [
                (
                    "the training step no longer fits: at least 20 of 10 GiB, as committed, was 4 of 10 GiB",
                    Risk.CAUTION,
                )
            ],
        ),
        (
            None,
            20,
            [("the training step does not fit: at least 20 of 10 GiB, as committed", Risk.CAUTION)],
        ),
        (20, 21, []),
        (20, 4, []),
        (20, 9.5, []),
        (
            4,
            9.5,
            [
                (
                    "the training step leaves only 5% of the memory free: 9.5 of 10 GiB, as committed, was 4 of 10 GiB",
                    Risk.CAUTION,
                )
            ],
        ),
        (9.4, 9.5, []),
        (
            4,
            None,
            [
                (
                    "the fit is not known any more: not compiled",
                    Risk.CAUTION,
                )
            ],
        ),
        (None, None, []),
        (None, 4, []),
    ],
)
def test_what_becomes_worse_is_a_caution(
    tmp_path: Path, before: Amount, after: Amount, expected: list[tuple[str, Risk]]
) -> None:
    """A rung that no longer fits, has little memory left, or is not known any more has a sentence."""
    changes = compute_fits(
        revision(tmp_path / "base", SPEC, before), revision(tmp_path / "head", LARGER, after), None
    )
    new = [(NEW, Risk.NONE)] * (after is not None)
    assert sentences(changes) == [*[(f"dev: v3-8: {text}", risk) for text, risk in expected], *new]
    assert [row.is_change for row in changes.rows] == [before != after]


def test_a_spec_without_a_step_has_no_fits(tmp_path: Path) -> None:
    """Nothing is read or reported."""
    data = spec(**_V3)
    base, head = (revision(tmp_path / name, data, None) for name in ("base", "head"))
    fit_path(tmp_path / "head").parent.mkdir()
    fit_path(tmp_path / "head").write_text("{")
    assert compute_fits(base, head, RunFits(FitFile(Path("x"), {}), "no file")) == FitChanges()


def test_a_removed_step_leaves_no_fit(tmp_path: Path) -> None:
    """The step itself has the sentence, and not each rung."""
    base, head = (
        revision(tmp_path / "base", SPEC, 4),
        revision(tmp_path / "head", spec(**_V3), None),
    )
    assert compute_fits(base, head, None) == FitChanges()


def test_a_changed_program_makes_the_fit_unknown(tmp_path: Path) -> None:
    """The reason names what changed since the compilation."""
    base, head = (
        revision(tmp_path / "base", SPEC, 4),
        revision(tmp_path / "head", SPEC, None, "step = 2\n"),
    )
    fit_path(tmp_path / "head").parent.mkdir()
    fit_path(tmp_path / "head").write_bytes(fit_path(tmp_path / "base").read_bytes())
    text = "dev: v3-8: the fit is not known any more: outdated by a change of trainer/fit.py"
    assert sentences(compute_fits(base, head, None)) == [(text, Risk.CAUTION)]


SAME_PROGRAM: Final = (
    "dev: v3-8: results/fit.json has another result for the same program and flags"
)
OTHER: Final = Compiler("0.10.2", "0.0.43")


@pytest.mark.parametrize(
    ("used", "changed"),
    [
        (5, {"compiler": OTHER}),
        (3, {"compiler": OTHER}),
        (4, {"flops": 1}),
        (5, {}),
        (4, {"files": {}}),
    ],
    ids=["more", "less", "flops", "by-hand", "files"],
)
def test_another_result_of_the_same_program_is_a_caution(
    tmp_path: Path, used: float, changed: dict[str, Any]
) -> None:
    """Its figures or its files differ, by another compiler or by hand, which a file does not tell."""
    base, head = (
        revision(tmp_path / "base", SPEC, 4),
        revision(tmp_path / "head", SPEC, used, **changed),
    )
    assert sentences(compute_fits(base, head, None)) == [(SAME_PROGRAM, Risk.CAUTION)]


def test_a_newer_compiler_with_the_same_result_is_no_news(tmp_path: Path) -> None:
    """Only figures are compared."""
    base, head = (
        revision(tmp_path / "base", SPEC, 4),
        revision(tmp_path / "head", SPEC, 4, compiler=OTHER),
    )
    assert sentences(compute_fits(base, head, None)) == []


def test_the_result_of_this_run_counts(tmp_path: Path) -> None:
    """The committed result that contradicts it is a caution, and no effect of the change."""
    base, head = (revision(tmp_path / name, SPEC, 4) for name in ("base", "head"))
    changes = compute_fits(base, head, run_of(head, 20))
    [(worse, _), (contradiction, risk)] = sentences(changes)
    assert (
        worse
        == "dev: v3-8: the training step no longer fits: at least 20 of 10 GiB, was 4 of 10 GiB"
    )
    assert contradiction == "dev: v3-8: results/fit.json has another result than this run"
    assert risk is Risk.CAUTION
    assert len(changes.notices) == 1
    assert changes.rows[0].after.is_trusted


@pytest.mark.parametrize("committed", [None, 4], ids=["missing", "outdated"])
def test_a_result_that_was_not_committed_is_no_caution(tmp_path: Path, committed: Amount) -> None:
    """A rung that this run has compiled is known, whatever is committed."""
    base = revision(tmp_path / "base", SPEC, None)
    head = revision(tmp_path / "head", SPEC, committed, files={PROGRAM: "0" * 16})
    changes = compute_fits(base, head, run_of(head, 4))
    text = "dev: v3-8: results/fit.json does not have the result of this run: commit what tpucfg fit writes"
    assert sentences(changes) == [(text, Risk.NONE)]
    assert not changes.is_change


MISSING: Final = "the fit is not known from this run: not compiled"
ELSE: Final = "the fit is not known from this run: outdated by a change of %s"


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (
            lambda _: RunFits(FitFile(Path("fit.json"), {}, is_trusted=True)),
            f"dev: v3-8: {MISSING}",
        ),
        (lambda head: run_of(head, 4, files={PROGRAM: "0" * 16}), f"dev: v3-8: {ELSE % PROGRAM}"),
        (
            lambda _: RunFits(FitFile(Path("x"), {}), "it is a pipe"),
            "the fit is not known from this run: it is a pipe",
        ),
    ],
    ids=["missing", "other-program", "unreadable"],
)
def test_a_run_without_a_result_is_never_silent(
    tmp_path: Path, run: Callable[[CompiledRevision], RunFits], text: str
) -> None:
    """The committed result is shown as committed, beside the sentence that this run does not confirm it."""
    base, head = (revision(tmp_path / name, SPEC, 4) for name in ("base", "head"))
    changes = compute_fits(base, head, run(head))
    assert sentences(changes) == [(text, Risk.UNKNOWN)]
    assert not changes.rows[0].after.is_trusted
    assert not changes.is_change


@pytest.mark.parametrize("opened_by", ["committed", "run"])
def test_a_committed_result_that_opens_the_gate_is_a_caution(
    tmp_path: Path, opened_by: str
) -> None:
    """One of this run is not."""
    gated = spec(trainer__fit=STEP, **_V3, gate={"fit": True})
    base, head = revision(tmp_path / "base", gated, None), revision(tmp_path / "head", gated, 4)
    run = run_of(head, 4) if opened_by == "run" else None
    risks = [risk for _, risk in sentences(compute_fits(base, head, run))]
    assert risks == ([] if run else [Risk.CAUTION])


@pytest.mark.parametrize(("available", "is_raised"), [(9, False), (10, False), (64, True)])
def test_more_memory_of_a_device_is_a_caution(
    tmp_path: Path, available: int, is_raised: bool
) -> None:
    """A flag such as --xla_tpu_max_hbm_size_mib raises what the compiler grants, and so can an editor."""
    base = revision(tmp_path / "base", SPEC, 4)
    head = revision(tmp_path / "head", LARGER, 5, memory=Memory(5 * GIB, available * GIB))
    raised = f"dev: v3-8: a device is taken to have {available} GiB of memory, previously 10 GiB"
    expected = [(raised, Risk.CAUTION)] if is_raised else []
    assert sentences(compute_fits(base, head, None)) == [*expected, (NEW, Risk.NONE)]
