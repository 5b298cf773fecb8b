"""Features of Pulumi in the programs of two revisions that only an engine with its plugins can carry out."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tpucfg.changes.statements import Risk, Statement
from tpucfg.infra.resources import EnvironmentResources
from tpucfg.text_format import listed

_MAX_NAMES: Final = 4


class _Feature(NamedTuple):
    """A sentence in which `{}` is the list of names, and its risk."""

    text: str
    risk: Risk = Risk.DESTRUCTIVE


_FEATURES: Final[Mapping[str, _Feature]] = {
    "transform": _Feature("the program changes inputs in the engine, by a transform of {}, which is not shown here"),
    "component": _Feature("the program uses components of other packages, whose resources are not shown here: {}"),
    "dynamic": _Feature("the program runs code of its own as a provider, whose effect this review does not show: {}"),
    "parameters": _Feature("the program describes a package by parameters, whose code is not shown here: {}"),
    "call": _Feature("the program looks up {}, whose answer this review does not know", Risk.UNKNOWN),
    "read": _Feature("the program reads {}, whose values this review does not know", Risk.UNKNOWN),
}


def unseen_statements(before: EnvironmentResources | None, after: EnvironmentResources) -> Iterator[Statement]:
    """Yield the features that base does not use, or uses for something else."""
    known = {*before.unseen} if before else set()
    by_kind: dict[str, list[str]] = {}
    for item in after.unseen:
        if item not in known:
            by_kind.setdefault(item.kind, []).append(item.name)
    for kind, names in by_kind.items():
        feature = _FEATURES.get(kind, _Feature("the program uses {}, which this review does not know"))
        yield Statement(feature.text, (listed(names, _MAX_NAMES),), feature.risk)
