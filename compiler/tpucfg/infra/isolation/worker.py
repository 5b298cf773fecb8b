"""Worker that runs one spec's stack program in the process that `supervisor` has confined for it.

Writes one line of JSON per environment to a pipe, in the order of the names. The program's own output stays out of it.
"""

import json
import os
from pathlib import Path
from typing import Any

from tpucfg.infra.mock_runner import ProgramError
from tpucfg.infra.stack_program import run_stack_program
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Project
from tpucfg.yamldoc.reader import read_file


def main(spec: str, pipe: str, *environment_names: str) -> None:
    """Run the stack program once per environment and write each result to the pipe."""
    project = parse_project(read_file(Path(spec))).project
    with os.fdopen(int(pipe), "w", encoding="utf-8") as results:
        for name in environment_names:
            results.write(f"{_result_line(Path(spec), project, name)}\n")
            # A program that ends the process takes down only the environments after this one.
            results.flush()


def _result_line(spec: Path, project: Project | None, name: str) -> str:
    if project is None or name not in project.environments:
        return json.dumps({"environment": name, "error": f"the spec has no environment {name}"})
    try:
        declared = run_stack_program(spec, project, name)
        result = {
            "environment": name,
            "resources": [resource._asdict() for resource in declared.resources],
            "outputs": dict(declared.outputs),
            "providers": [resource._asdict() for resource in declared.providers],
            "unseen": declared.unseen,
        }
        return json.dumps(result, default=_asset_fields)
    except ProgramError as error:
        return json.dumps({"environment": name, "error": str(error)})
    except (RecursionError, TypeError, ValueError) as error:
        message = f"the stack program declares a value without a JSON form: {type(error).__name__}: {error}"
        return json.dumps({"environment": name, "error": message})


def _asset_fields(value: Any) -> Any:
    """Return an asset or archive as its fields, so that two with equal content compare equal."""
    return {type(value).__name__: vars(value)}
