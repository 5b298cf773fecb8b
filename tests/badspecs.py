"""The corpus of bad specs: each folder of tests/bad holds a spec, or a config, and what is said about it.

`tpucfg.yaml` (or `.json`) is checked as a spec, `config.<target>.yaml` as a config for that target; a folder with
neither shows what is said where there is no file. Beside a spec there may be `Pulumi.yaml` with stack files, and
`results/`, which are checked too; `outputs.json`, which are compared with it; and `resources.json`, in the form that
`tpucfg infra` prints, which are judged. A case of TPU110 shows what `tpucfg submit` refuses. `expected.txt` is what is
printed, to the byte. `fixed.*`, where there is one, is the same file with the mistakes fixed.
"""

import io
import json
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.cli.app import run
from tpucfg.findings import Finding, errors
from tpucfg.findings.formats.text import report
from tpucfg.infra.resource_rules import resource_findings
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.render.pipeline import compile_project
from tpucfg.render.validate import config_findings
from tpucfg.spec.parse import load_project, parse_project
from tpucfg.spec.semantic_rules import package_findings
from tpucfg.yamldoc.document import Document

BAD: Final = Path(__file__).parent / "bad"
CATALOG: Final = Catalog()
SPECS: Final = ("tpucfg.yaml", "tpucfg.json")


def cases() -> Iterator[Path]:
    """The folders, by name."""
    return (folder for folder in sorted(BAD.iterdir()) if folder.is_dir())


def file_of(folder: Path) -> Path:
    """The file of a case that is checked."""
    configs = sorted(folder.glob("config.*.yaml"))
    there = [folder / name for name in SPECS if (folder / name).exists()]
    return next(iter([*configs, *there]), folder / SPECS[0])


def arguments(file: Path) -> list[str]:
    """How the file is checked, from its own folder."""
    kind, *target = file.name.split(".")[:-1]
    return ["check", "--config", file.name, "--target", *target] if kind == "config" else ["check", "--spec", file.name]


def checked(file: Path, *more: str) -> tuple[int, str, str]:
    """The exit status of `tpucfg check` in the file's folder, and what it prints to stdout and to stderr."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(file.parent), redirect_stdout(out), redirect_stderr(err):
        if (file.parent / "resources.json").exists():
            return *_judged(file), ""
        if file.parent.name.startswith("TPU110-"):
            return run(["submit"]), err.getvalue(), ""
        outputs = ["--stack-outputs", "outputs.json"] if (file.parent / "outputs.json").exists() else []
        status = run([*arguments(file), *outputs, *more])
    return status, out.getvalue(), err.getvalue()


def _judged(file: Path) -> tuple[int, str]:
    """What `tpucfg infra` says about resources. It would get them from the stack program, which needs Pulumi."""
    project, _ = load_project(Path(file.name))
    assert project
    (entry,) = json.loads((file.parent / "resources.json").read_text())
    resources = tuple(Resource(**resource) for resource in entry["resources"])
    made = EnvironmentResources(project.environments[entry["name"]], resources, entry["outputs"])
    found = resource_findings(made, project)
    return int(bool(errors(found))), report(found, {file.name: file.read_text()})


def is_checked(folder: Path) -> bool:
    """Whether `tpucfg check` is what says it, and no other command."""
    return not (folder / "resources.json").exists() and not folder.name.startswith("TPU110-")


def is_alone(folder: Path) -> bool:
    """Whether a case is about one file, and not about one beside another."""
    return not any((folder / name).exists() for name in ("Pulumi.yaml", "outputs.json", "resources.json", "results"))


def findings_of(document: Document, file: Path) -> tuple[Finding, ...]:
    """All findings about a text that stands, or would stand, in the file of a case."""
    kind, _, target = file.stem.partition(".")
    if kind == "config":
        return config_findings(document, target, CATALOG)
    project, found = parse_project(document)
    if project is None:
        return found
    return compile_project(
        project, CATALOG, earlier_findings=[*found, *package_findings(project, file.parent)]
    ).findings
