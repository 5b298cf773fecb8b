"""Write results of compilations into repositories, as `tpucfg fit` would for the spec and the program in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fit_results import GIB, result_of
from repositories import Repository
from tpucfg.catalog import Catalog
from tpucfg.fit.fit_file import Compiler, FitResult, Memory, fit_path, update_fit_file
from tpucfg.fit.rung_fit import ProgramFiles
from tpucfg.plan import Selection
from tpucfg.render.pipeline import compile_spec_file

PROGRAM: Final = "trainer/fit.py"
AVAILABLE: Final = 7.48
"""GiB that the compiler grants on v2."""
MODEL_DIR: Final = "    model_dir: ${run_dir}\n"
FIT_STEP: Final = '  fit: {step: "trainer.fit:abstract_step"}\n'
NEW_COMPILER: Final = Compiler("0.11.0", "0.0.50.1")


def add_step(repository: Repository) -> None:
    """Name a training step in the spec, and write the program with it."""
    repository.edit((MODEL_DIR, MODEL_DIR + FIT_STEP))
    program = repository.folder / PROGRAM
    program.parent.mkdir(exist_ok=True)
    program.write_text("def abstract_step(devices, flags): ...\n")


def compiled(
    folder: Path, memory: Mapping[str, float], compiler: Compiler | None = None
) -> list[FitResult]:
    """Return a result for each rung of the spec in a folder whose size has an amount of memory, in GiB.

    A step that needs more than is available is refused.
    """
    spec = compile_spec_file(folder / "tpucfg.yaml", Catalog(), Selection(), "tpucfg.yaml")
    assert spec.project is not None
    files = ProgramFiles(folder).hashes([PROGRAM])
    results = []
    for job, _ in spec.request_bodies:
        if job.size in memory:
            used = memory[job.size]
            fits = used <= AVAILABLE
            result = result_of(
                spec.project,
                job,
                files=files,
                fits=fits,
                memory=Memory(int(used * GIB), int(AVAILABLE * GIB), exact=fits),
            )
            results.append(result._replace(compiler=compiler or result.compiler))
    return results


def write_fits(
    repository: Repository,
    memory: Mapping[str, float],
    path: Path | None = None,
    compiler: Compiler | None = None,
) -> Path:
    """Write the results for the spec as it is now, by default to the committed file."""
    path = path or fit_path(repository.folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    update_fit_file(path, lambda: compiled(repository.folder, memory, compiler))
    return path
