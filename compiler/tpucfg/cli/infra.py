"""The command `tpucfg infra`."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import print_findings, print_result
from tpucfg.cli.options import SPEC, EnvOption, SpecOption, format_option, option, selection
from tpucfg.findings import errors
from tpucfg.infra.resources import Declared, EnvironmentResources, ProgramFailure
from tpucfg.infra.spec_errors import stopping_errors
from tpucfg.paths import leaf_paths, value_at
from tpucfg.refusal import RefusalError
from tpucfg.render.pipeline import compile_spec_file
from tpucfg.text_format import json_text, printable

_STRUCTURE_OPTIONS: Final = ("aliases", "parent", "parentAliases", "provider")
"""Options that each resource has; only the JSON output lists them."""


def infra(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    format: Annotated[str, format_option("text|json")] = "text",
    changed_from: Annotated[
        str | None,
        option(
            "--changed-from REV",
            "List the stacks of HEAD for which `pulumi up` reads other files than at REV.",
            hidden=True,  # for the workflow that updates stacks
        ),
    ] = None,
) -> None:
    """Show the resources of each environment, by running the stack program without cloud, engine or credentials.

    The JSON has a program that fails as data, and is what tpucfg review --resources takes.

    Example: tpucfg infra --env prod
    """
    if changed_from is not None:
        _print_changed_stacks(changed_from)
        return
    from tpucfg.infra.resource_rules import resource_findings
    from tpucfg.infra.resources import document_data
    from tpucfg.infra.stack_program import ProgramRequest, log_lines, run_programs

    chosen = selection(env)
    compiled = compile_spec_file(spec, Catalog(), chosen)
    project = compiled.plan.project if compiled.plan else None
    stopping = stopping_errors(project, compiled.findings)
    # As JSON, each program fails because of the errors of its own environment.
    if project is None or (stopping and (compiled.project is None or format != "json")):
        # The program would report an error of the spec too, but with the path as it is from the program's folder.
        print_result(spec, compiled.findings, compiled.source)
        raise CommandExit(ERRORS)
    names = tuple(
        name
        for name in project.environments
        if name in chosen.environments or not chosen.environments
    )
    (results,) = run_programs([ProgramRequest(spec, project, names)])
    declared = [result for result in results.values() if isinstance(result, EnvironmentResources)]
    findings = [
        finding for resources in declared for finding in resource_findings(resources, project)
    ]
    if format == "json":
        sys.stdout.write(
            json_text(document_data(Path(os.path.normpath(spec)).as_posix(), results, findings))
        )
    else:
        sys.stdout.writelines(f"{line}\n" for line in _text(results))
    print_findings(
        [finding for finding in findings if finding.level != "note"],
        {project.document.file: project.document.text},
    )
    failures = [
        f"{name}: {result.reason}"
        for name, result in results.items()
        if isinstance(result, ProgramFailure)
    ]
    if failures:
        raise RefusalError("\n".join(log_lines("\n".join(failures))))
    if errors(findings):
        raise CommandExit(ERRORS)


def _print_changed_stacks(revision: str) -> None:
    """Print the stacks that changed as JSON in one line; all of them if the revision is no commit that is known."""
    from tpucfg.git.changed_stacks import changed_stacks
    from tpucfg.git.repository import RevisionError, working_repository

    repository = working_repository((), ("infra",))
    try:
        base = repository.resolve(revision)
    except RevisionError:
        base = None
    if head := repository.resolve("HEAD"):
        stacks = changed_stacks(repository, base, head)
        print(json.dumps([stack._asdict() for stack in stacks]))


def _text(results: Mapping[str, Declared]) -> Iterator[str]:
    environments = (
        result for result in results.values() if isinstance(result, EnvironmentResources)
    )
    for number, resources in enumerate(environments):
        environment = resources.environment
        yield from ([""] if number else [])
        yield f"{environment.name}: {environment.target} in {environment.project}, {environment.region}"
        for resource in resources.resources:
            options = {"protected": resource.protect, "retained": resource.retain}
            marks = [mark for mark, is_set in options.items() if is_set]
            yield printable(
                f"  {resource.kind} {resource.name}" + (f" ({', '.join(marks)})" if marks else "")
            )
            yield from _value_lines(resource.inputs)
            for name in (name for name in resource.options if name not in _STRUCTURE_OPTIONS):
                yield printable(
                    f"    option {name}: {json.dumps(resource.options[name], ensure_ascii=False)}"
                )
        yield "  outputs"
        yield from _value_lines(resources.outputs)


def _value_lines(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield each scalar value with its path, sorted, so that two outputs can be compared line by line."""
    for path in sorted(filter(None, leaf_paths(values))):
        name = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in path
        ).removeprefix(".")
        value = value_at(values, path)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield printable(f"    {name}: {text}")
