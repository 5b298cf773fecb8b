"""Providers that the programs of two revisions configure, and the resources that use them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.resources import EnvironmentResources, Resource
from tpucfg.text_format import format_count, format_value

_PREFIX: Final = "pulumi:providers:"
_LOCATION_INPUTS: Final = ("project", "region", "zone")
"""Inputs of Google's provider that are only defaults; each resource of the bundled program sets its own."""
_DEFAULT_PROVIDER: Final = "the default provider"
_CODE_OPTIONS: Final = ("pluginDownloadURL", "version", "envVarMappings")


def provider_statements(before: EnvironmentResources | None, after: EnvironmentResources) -> Iterator[Statement]:
    """Yield each input of a provider that is new or changed, and each change of the provider that resources use."""
    old = {(provider.type, provider.name): provider for provider in before.providers} if before else {}
    for provider in after.providers:
        yield from _input_statements(old.get((provider.type, provider.name)), provider)
    if before:
        yield from _use_statements(before, after)


def _input_statements(before: Resource | None, after: Resource) -> Iterator[Statement]:
    package = after.type.removeprefix(_PREFIX)
    for source in ("inputs", "options"):
        old: Mapping[str, Any] = getattr(before, source) if before else {}
        new: Mapping[str, Any] = getattr(after, source)
        for key in sorted({*old, *new}):
            is_default = key in _LOCATION_INPUTS if source == "inputs" else key not in _CODE_OPTIONS
            if is_default or (old.get(key) == new.get(key) and _digest(before, key) == _digest(after, key)):
                continue
            if key in new:
                text = format_value(new[key], quoted=False, max_length=200)
                template = (
                    f"{{0}} of the provider {{2}} ({{3}}) is {'now ' * bool(before)}{{1}}: updates act through it"
                )
                yield Statement(template, (key, text, after.name, package), Risk.DESTRUCTIVE)
            else:
                template = "{0} of the provider {1} ({2}) removed: updates act without it"
                yield Statement(template, (key, after.name, package), Risk.DESTRUCTIVE)


def _digest(provider: Resource | None, key: str) -> str:
    return provider.secrets.get(key, "") if provider else ""


def _use_statements(before: EnvironmentResources, after: EnvironmentResources) -> Iterator[Statement]:
    """Yield each pair of providers between which resources move: another one may have other credentials."""
    old = {(resource.parent, resource.type, resource.name): _provider(resource) for resource in before.resources}
    moved: dict[tuple[str, str], list[Resource]] = {}
    for resource in after.resources:
        previous = old.get((resource.parent, resource.type, resource.name))
        if previous is not None and previous != _provider(resource):
            moved.setdefault((previous, _provider(resource)), []).append(resource)
    for (was, now), resources in moved.items():
        yield _moved(was, now, resources)


def _moved(was: str, now: str, resources: Sequence[Resource]) -> Statement:
    count = format_count(len(resources), "resource")
    template = (
        f"{count} now use{'s' * (len(resources) == 1)} {{1}} instead of the provider {{0}}, such as {{2}}: "
        "its project and credentials come from the machine that runs the update"
        if not now
        else f"{count} now use{'s' * (len(resources) == 1)} the provider {{1}} instead of {{0}}, such as {{2}}"
    )
    example = f"{resources[0].kind} {resources[0].name}"
    return Statement(template, (was or _DEFAULT_PROVIDER, now or _DEFAULT_PROVIDER, example), Risk.DESTRUCTIVE)


def _provider(resource: Resource) -> str:
    return str(resource.options.get("provider", ""))
