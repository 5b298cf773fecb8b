"""The corpus of bad specs: each folder of tests/bad has a spec or a config, and the exact output of its check.

- `tpucfg.yaml` (or `.json`) is checked as a spec, `config.<target>.yaml` as a config for that target. A folder with
  neither is the case of a missing file.
- `Pulumi.yaml` with stack files, and `results/`, are checked together with the spec.
- `outputs.json` is compared with the spec by `--stack-outputs`.
- `resources.json`, in the format of `tpucfg infra`, is checked by the resource rules.
- A case of TPU130, TPU110 or TPU111, about the gate, has the output of `tpucfg submit`.
- A case about a compilation has the output of `tpucfg fit`; its `python` stands in for one with JAX.
- `expected.txt` is the exact output. `fixed.*`, if there is one, is the file with its mistakes fixed.
"""

import io
import json
import re
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.cli.app import run
from tpucfg.findings import Finding, errors
from tpucfg.findings.text import report
from tpucfg.infra.resource_rules import resource_findings
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.render.pipeline import compile_project, config_findings, findings_beside
from tpucfg.spec.parse import load_project, parse_project
from tpucfg.targets.objects import other_target
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_file

BAD: Final = Path(__file__).parent / "bad"
CATALOG: Final = Catalog()
_REFUSED: Final = ("TPU130-", "TPU110-", "TPU111-")
_COMPILED: Final = tuple(f"TPU{number:03}-" for number in (62, 63, 112, 114, 116, 117, 118, 119))
_SEVERAL: Final = ("config.compute-engine.", "config.gke.")
"""Configs that may have several documents."""
SPECS: Final = ("tpucfg.yaml", "tpucfg.json")


def cases() -> Iterator[Path]:
    """Yield the folders, sorted by name."""
    return (folder for folder in sorted(BAD.iterdir()) if folder.is_dir())


def file_of(folder: Path) -> Path:
    """Return the file of a case that is checked; it is missing in some."""
    configs = sorted(folder.glob("config.*.yaml"))
    specs = [folder / name for name in SPECS if (folder / name).exists()]
    return next(iter([*configs, *specs]), folder / SPECS[0])


def read_case(file: Path, name: str = "") -> Document:
    """Return the file of a case, or one of another name in its place, as its check reads it."""
    name = name or file.name
    return read_file(file, name, several=has_several_documents(name))


def has_several_documents(name: str) -> bool:
    """Return True if the configs of the target in a case's file name may have several documents."""
    return name.startswith(_SEVERAL)


def arguments(file: Path) -> list[str]:
    """Return the arguments of tpucfg that check the file from its own folder."""
    kind, *target = file.name.split(".")[:-1]
    return (
        ["check", "--config", file.name, "--target", *target]
        if kind == "config"
        else ["check", "--spec", file.name]
    )


def run_check(file: Path, *more: str) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr of the case's command, run in the file's folder."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(file.parent), redirect_stdout(out), redirect_stderr(err):
        if (file.parent / "resources.json").exists():
            return *_check_resources(file), ""
        if file.parent.name.startswith(_REFUSED):
            # submit prints its refusal on stderr, as stdout is for the command that starts the job.
            return run(["submit"]), err.getvalue(), ""
        if file.parent.name.startswith(_COMPILED):
            status = run(["fit"])
            return (
                status,
                re.sub(r"^[0-9]+/[0-9]+ .*\n", "", err.getvalue(), flags=re.MULTILINE),
                "",
            )
        outputs = (
            ["--stack-outputs", "outputs.json"] if (file.parent / "outputs.json").exists() else []
        )
        status = run([*arguments(file), *outputs, *more])
    return status, out.getvalue(), err.getvalue()


def _check_resources(file: Path) -> tuple[int, str]:
    """Return status and output of the resource rules, without the stack program, which needs Pulumi."""
    project, _ = load_project(Path(file.name))
    assert project
    (entry,) = json.loads((file.parent / "resources.json").read_text())
    resources = tuple(Resource(**resource) for resource in entry["resources"])
    declared = EnvironmentResources(
        project.environments[entry["name"]], resources, entry["outputs"]
    )
    findings = resource_findings(declared, project)
    return int(bool(errors(findings))), report(findings, {file.name: file.read_text()})


def is_case_of_check(folder: Path) -> bool:
    """Return True if `tpucfg check` prints the findings, and no other command."""
    return not (folder / "resources.json").exists() and not folder.name.startswith(
        (*_REFUSED, *_COMPILED)
    )


def has_one_file(folder: Path) -> bool:
    """Return True if the case is about a single file."""
    return not any(
        (folder / name).exists()
        for name in ("Pulumi.yaml", "outputs.json", "resources.json", "results")
    )


def findings_of(document: Document, file: Path) -> tuple[Finding, ...]:
    """Return all findings about a document, as if it were read from the file of a case."""
    kind, _, target = file.stem.partition(".")
    if kind == "config":
        findings = config_findings(document, target, CATALOG)
        wrong_target = other_target(document, target) if findings else None
        return (wrong_target,) if wrong_target else findings
    project, spec_findings = parse_project(document)
    if project is None:
        return spec_findings
    beside = [*spec_findings, *findings_beside(project, file.parent, CATALOG)]
    return compile_project(project, CATALOG, earlier_findings=beside).findings
