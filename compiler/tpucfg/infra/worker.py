"""One side's stack program in a process of its own: `python -m tpucfg.infra.worker SPEC PIPE ENVIRONMENT...`.

Each environment is one line of JSON on the pipe, in the order asked; what the program prints goes elsewhere.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tpucfg.infra.mock_runner import ProgramError
from tpucfg.infra.stack_program import PackagesMissingError, declared_resources
from tpucfg.spec.parse import parse_project
from tpucfg.spec.project import Project
from tpucfg.yamldoc.reader import read_file


def main(spec: str, pipe: str, *names: str) -> None:
    """Run the program for each environment and say what it declares."""
    project = parse_project(read_file(Path(spec))).project
    with os.fdopen(int(pipe), "w", encoding="utf-8") as answers:
        for name in names:
            answers.write(f"{_answer(Path(spec), project, name)}\n")
            answers.flush()


def _answer(spec: Path, project: Project | None, name: str) -> str:
    if project is None or name not in project.environments:
        return json.dumps({"environment": name, "error": f"the spec has no environment {name}"})
    try:
        made = declared_resources(spec, project, name)
        resources = [resource._asdict() for resource in made.resources]
        told = {"environment": name, "resources": resources, "outputs": dict(made.outputs)}
        return json.dumps(told, default=_plain)
    except ProgramError as error:
        return json.dumps({"environment": name, "error": str(error)})
    except PackagesMissingError as error:
        return json.dumps({"environment": name, "missing": str(error)})
    except (RecursionError, TypeError, ValueError) as error:
        said = f"the stack program declares what cannot be told: {type(error).__name__}: {error}"
        return json.dumps({"environment": name, "error": said})


def _plain(value: Any) -> Any:
    """An asset or an archive by what it holds, so that two that hold the same are equal."""
    return {type(value).__name__: vars(value)}


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    # Nothing is left to be done, and what the SDK left open would complain on the way out.
    os._exit(0)
