"""The documents that show `tpucfg fit`, run with the real TPU compiler."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
import readme_blocks

from spec_factory import ROOT
from tpucfg.cli.app import run
from tpucfg.fit.fit_file import fit_path, read_fit_file

PAGES: Final = [
    page
    for page in readme_blocks.pages()
    if readme_blocks.COMPILER in page.read_text(encoding="utf-8")
]
CHAT: Final = ROOT / "examples" / "chat"


def versions(python: str) -> tuple[str, str]:
    """Return the versions of jax and libtpu."""
    script = "import importlib.metadata as m, json; print(json.dumps([m.version('jax'), m.version('libtpu')]))"
    output = subprocess.run(
        [python, "-c", script], check=True, capture_output=True, text=True
    ).stdout
    jax, libtpu = json.loads(output)
    return jax, libtpu


def committed_versions() -> set[tuple[str, str]]:
    """Return the versions that compiled the example's committed results."""
    results = read_fit_file(fit_path(CHAT)).results.values()
    return {(result.compiler.jax, result.compiler.libtpu) for result in results}


def test_documents_show_a_compilation() -> None:
    """The README and the page about it are among them."""
    assert {"README.md", "fit.md"} <= {page.name for page in PAGES}


def _telling(page: Path) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.telling,) if page == ROOT / "README.md" else ()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=_telling(page), id=page.relative_to(ROOT).as_posix())
        for page in PAGES
    ],
)
def test_a_document_shows_what_the_compiler_prints(
    page: Path, tmp_path: Path, tpu_python: str
) -> None:
    """With the versions of the committed results, the output is exactly the page's.

    Other versions plan other amounts of memory; with them, the smallest rung of the example has to fit as well.
    It finds a page that shows other figures than the committed results, or words that a command no longer prints.
    """
    if {versions(tpu_python)} == committed_versions():
        differences = [
            str(difference) for difference in readme_blocks.differences(page, Path(tpu_python))
        ]
        assert not differences, "\n\n".join(["refresh it with: make readme", *differences])
    else:
        copy = shutil.copytree(CHAT, tmp_path / "chat", ignore=shutil.ignore_patterns("results"))
        spec = copy / "tpucfg.yaml"
        text = spec.read_text(encoding="utf-8")
        spec.write_text(
            text.replace("abstract_step}", f"abstract_step, python: {tpu_python}}}"),
            encoding="utf-8",
        )
        assert run(["fit", "--spec", str(spec), "--env", "dev", "--size", "v5litepod-16"]) == 0
