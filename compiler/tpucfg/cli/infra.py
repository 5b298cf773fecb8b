"""`tpucfg infra`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from tpucfg.cli.exit_codes import ERRORS, USAGE, CommandExit
from tpucfg.cli.load_spec import load_project_or_exit, print_findings
from tpucfg.cli.options import SPEC, EnvOption, SpecOption, format_option, require_choice
from tpucfg.findings import Finding, errors
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.spec.project import Project
from tpucfg.text_format import json_text, printable


def infra(
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    format: Annotated[str, format_option("text|json")] = "text",
) -> None:
    """Print the resources of each environment, by running the stack program without cloud, engine or credentials.

    Example: tpucfg infra --env prod
    """
    from tpucfg.infra.resource_rules import resource_findings

    require_choice(format, tuple(_FORMATS), "--format")
    project = load_project_or_exit(spec)
    made = [_made(spec, project, name) for name in _chosen(project, env)]
    found = [finding for one in made for finding in resource_findings(one, project)]
    for line in _FORMATS[format](made, found):
        print(line)
    print_findings(
        [finding for finding in found if finding.level != "note"], {project.document.file: project.document.text}
    )
    if errors(found):
        raise CommandExit(ERRORS)


def _chosen(project: Project, env: list[str] | None) -> list[str]:
    from tpucfg.plan import Selection, SelectionError, select_sizes

    try:
        return [environment.name for environment, _ in select_sizes(project, Selection(tuple(env or ())))]
    except SelectionError as error:
        raise CommandExit(USAGE, str(error)) from None


def _made(spec: Path, project: Project, name: str) -> EnvironmentResources:
    from tpucfg.infra.mock_runner import ProgramError
    from tpucfg.infra.stack_program import INSTALL, PackagesMissingError, declared_resources

    try:
        return declared_resources(spec, project, name)
    except ProgramError as error:
        raise CommandExit(ERRORS, f"{name}: {error}") from None
    except PackagesMissingError as error:
        raise CommandExit(ERRORS, str(error), INSTALL) from None


def _text(made: Sequence[EnvironmentResources], _: Sequence[Finding]) -> Iterator[str]:
    for number, one in enumerate(made):
        environment = one.environment
        yield from ([""] if number else [])
        yield f"{environment.name}: {environment.target} in {environment.project}, {environment.region}"
        for resource in one.resources:
            marks = [mark for mark, holds in (("protected", resource.protect), ("retained", resource.retain)) if holds]
            yield f"  {resource.kind} {resource.name}" + (f" ({', '.join(marks)})" if marks else "")
            yield from (f"    {path}: {_plain(value)}" for path, value in _leaves(resource.inputs))
        yield "  outputs"
        yield from (f"    {name}: {value}" for name, value in sorted(one.outputs.items()))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each single value with its path, sorted, so that two texts can be compared line by line."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _plain(value: Any) -> str:
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _json(made: Sequence[EnvironmentResources], found: Sequence[Finding]) -> Iterator[str]:
    kept = ("id", "level", "message", "help")
    document = {
        "environments": [
            {
                "name": one.environment.name,
                "resources": [_resource(resource) for resource in one.resources],
                "outputs": dict(sorted(one.outputs.items())),
            }
            for one in made
        ],
        "findings": [{key: getattr(it, key) for key in kept} | {"location": str(it.location)} for it in found],
    }
    yield json_text(document).rstrip("\n")


def _resource(resource: Resource) -> dict[str, Any]:
    inputs = json.loads(json.dumps(resource.inputs, sort_keys=True))
    return resource._asdict() | {"inputs": inputs}


_FORMATS: Final[Mapping[str, Callable[[Sequence[EnvironmentResources], Sequence[Finding]], Iterator[str]]]] = {
    "text": _text,
    "json": _json,
}
