"""The rules of Compute Engine for the objects of a slice: what it refuses although each object fits its schema.

Every rule takes the whole config, as most of them compare two objects. A config written by hand may lack some objects.
"""

import re
from collections.abc import Iterator
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine.findings import MAX_BASE_NAME_LENGTH, MAX_NAME_LENGTH
from tpucfg.targets.compute_engine.group_rules import group_rules
from tpucfg.targets.compute_engine.host_rules import host_rules
from tpucfg.targets.compute_engine.paths import DOCUMENTS, GROUP, INSTANCE
from tpucfg.targets.hosts.findings import NAMES
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed
from tpucfg.yamldoc.document import KeyPath

_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
"""The form of a name, besides its length (NAMES)."""


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a config's objects: missing ones, names, and those of hosts and groups."""
    yield from _object_rules(body)
    yield from _name_rules(body)
    yield from host_rules(body)
    yield from group_rules(body, catalog)


def _object_rules(body: RequestBody) -> Iterator[Problem]:
    if GROUP not in body and INSTANCE not in body:
        fix = f"add the document of an {INSTANCE}, or of an {GROUP}"
        yield Problem("TPU071", "no document of the config creates a host", (), fix)
    if INSTANCE in body and len(body) > 1:
        others = listed([key for key in DOCUMENTS if key in body and key != INSTANCE], last=" and ")
        yield service_problem((INSTANCE,), f"it is one more host beside {others}", "delete one of them", at_key=True)


def _name_rules(body: RequestBody) -> Iterator[Problem]:
    for key, value in body.items():
        yield from _wrong_name((key, "name"), value["name"], MAX_NAME_LENGTH)
    base = body.get(GROUP, {}).get("baseInstanceName", "")
    yield from _wrong_name((GROUP, "baseInstanceName"), base.partition("#")[0], MAX_BASE_NAME_LENGTH)


def _wrong_name(path: KeyPath, name: str, limit: int) -> Iterator[Problem]:
    if name and not _NAME.fullmatch(name.removesuffix("-")):
        message = (
            f"{format_value(name)} is no name of lower-case letters, digits and dashes, which starts with a letter"
        )
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        fix = f"set it to {near}" if _NAME.fullmatch(near) else "choose another name"
        yield service_problem(path, f"{message}: {NAMES}", fix)
    if (excess := len(name) - limit) > 0:
        message = f"the name {name} has {len(name)} characters, and {limit} are allowed for {path[0]}.{path[-1]}"
        yield Problem("TPU030", message, path, f"shorten it by {excess}", details=(f"the rule: {NAMES}",))
