"""The rules of Compute Engine for the names of a config's objects, and of the instances of a group."""

import re
from collections.abc import Iterator
from typing import Final

from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine.findings import MAX_BASE_NAME_LENGTH, MAX_NAME_LENGTH
from tpucfg.targets.compute_engine.paths import GROUP
from tpucfg.targets.compute_engine.references import references_of
from tpucfg.targets.hosts.findings import NAMES
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value
from tpucfg.yamldoc.document import KeyPath

_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
"""The form of a name, besides its length (NAMES)."""


def name_rules(body: RequestBody) -> Iterator[Problem]:
    """Yield an error for each name of another form or length."""
    referred = {reference.key: reference.name for reference in references_of(body.get(GROUP, {}))}
    for key, value in body.items():
        yield from _wrong_name((key, "name"), value["name"], MAX_NAME_LENGTH, referred.get(key, ""))
    base = body.get(GROUP, {}).get("baseInstanceName", "")
    yield from _wrong_name((GROUP, "baseInstanceName"), base.partition("#")[0], MAX_BASE_NAME_LENGTH)


def is_name(name: str) -> bool:
    """Return True if a name has the form that Compute Engine accepts, whatever its length."""
    return bool(_NAME.fullmatch(name))


def _wrong_name(path: KeyPath, name: str, limit: int, referred: str = "") -> Iterator[Problem]:
    """Yield an error for a name; the help prefers the name by which another object refers to it."""
    if name and not is_name(name.removesuffix("-")):
        message = (
            f"{format_value(name)} is no name of lower-case letters, digits and dashes, which starts with a letter"
        )
        near = referred if is_name(referred) else re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        fix = f"set it to {near}" if is_name(near) else "choose another name"
        yield service_problem(path, f"{message}: {NAMES}", fix)
    if (excess := len(name) - limit) > 0:
        message = f"the name {name} has {len(name)} characters, and {limit} are allowed for {path[0]}.{path[-1]}"
        yield Problem("TPU030", message, path, f"shorten it by {excess}", details=(f"the rule: {NAMES}",))
