"""The command `tpucfg infra`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.load_spec import load_compiled, print_findings
from tpucfg.cli.options import SPEC, EnvOption, SpecOption, format_option, require_choice, selection
from tpucfg.findings import Finding, errors
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.spec.project import Project
from tpucfg.text_format import json_text, printable

_STRUCTURE_OPTIONS: Final = ("parent", "parentAliases", "provider")
"""Options that each resource has; only the JSON output lists them."""


def infra(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    format: Annotated[str, format_option("text|json")] = "text",
) -> None:
    """Show the resources of each environment, by running the stack program without cloud, engine or credentials.

    Example: tpucfg infra --env prod
    """
    from tpucfg.infra.resource_rules import resource_findings

    require_choice(format, tuple(_FORMATS), "--format")
    # The program would report an error of the spec too, but with the path as it is from the program's folder.
    project, compiled = load_compiled(spec, Catalog(), selection(env, None), quiet=True)
    names = tuple(dict.fromkeys(job.environment.name for job in compiled.jobs))
    environments = _declared_resources(spec, project, names)
    findings = [finding for resources in environments for finding in resource_findings(resources, project)]
    for line in _FORMATS[format](environments, findings):
        print(line)
    print_findings(
        [finding for finding in findings if finding.level != "note"], {project.document.file: project.document.text}
    )
    if errors(findings):
        raise CommandExit(ERRORS)


def _declared_resources(spec: Path, project: Project, names: tuple[str, ...]) -> list[EnvironmentResources]:
    """Return the resources of the environments, or exit with the first failure."""
    from tpucfg.infra.isolation.isolated_runner import ProgramRequest, run_isolated
    from tpucfg.infra.isolation.program_output import log_lines
    from tpucfg.infra.stack_program import PackagesMissingError
    from tpucfg.install_source import INSTALL_INFRA

    try:
        (results,) = run_isolated([ProgramRequest(spec, project, names)])
    except PackagesMissingError as error:
        raise CommandExit(ERRORS, str(error), INSTALL_INFRA) from None
    declared = []
    for name, result in results.items():
        if not isinstance(result, EnvironmentResources):
            raise CommandExit(ERRORS, "\n".join(log_lines(f"{name}: {result.reason}")))
        declared.append(result)
    return declared


def _text(environments: Sequence[EnvironmentResources], _: Sequence[Finding]) -> Iterator[str]:
    for number, resources in enumerate(environments):
        environment = resources.environment
        yield from ([""] if number else [])
        yield f"{environment.name}: {environment.target} in {environment.project}, {environment.region}"
        for resource in resources.resources:
            options = {"protected": resource.protect, "retained": resource.retain}
            marks = [mark for mark, is_set in options.items() if is_set]
            yield printable(f"  {resource.kind} {resource.name}" + (f" ({', '.join(marks)})" if marks else ""))
            yield from _value_lines(resource.shown_inputs)
            yield from _option_lines(resource)
        yield "  outputs"
        yield from _value_lines(resources.outputs)


def _value_lines(values: Mapping[str, Any]) -> Iterator[str]:
    for path, value in _leaves(values):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield printable(f"    {path}: {text}")


def _option_lines(resource: Resource) -> Iterator[str]:
    for name, value in resource.options.items():
        if name not in _STRUCTURE_OPTIONS:
            yield printable(f"    option {name}: {json.dumps(value, ensure_ascii=False)}")


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each scalar value with its path, sorted, so that two outputs can be compared line by line."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _json(environments: Sequence[EnvironmentResources], findings: Sequence[Finding]) -> Iterator[str]:
    document = {
        "environments": [
            {
                "name": resources.environment.name,
                "resources": [_resource_data(resource) for resource in resources.resources],
                "outputs": dict(sorted(resources.outputs.items())),
            }
            for resources in environments
        ],
        "findings": [finding.data("id", "level", "message", "help", "location") for finding in findings],
    }
    yield json_text(document).rstrip("\n")


def _resource_data(resource: Resource) -> dict[str, Any]:
    sorted_inputs = json.loads(json.dumps(resource.shown_inputs, sort_keys=True))
    return resource._asdict() | {"inputs": sorted_inputs}


_FORMATS: Final[Mapping[str, Callable[[Sequence[EnvironmentResources], Sequence[Finding]], Iterator[str]]]] = {
    "text": _text,
    "json": _json,
}
