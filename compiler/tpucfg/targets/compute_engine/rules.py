"""The rules of Compute Engine for the objects of a slice: what it refuses although each object fits its schema.

Every rule takes the whole config, as most of them compare two objects. A config written by hand may lack some objects.
"""

from collections.abc import Iterator

from tpucfg.catalog import Catalog
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine.group_rules import group_rules
from tpucfg.targets.compute_engine.host_rules import host_rules
from tpucfg.targets.compute_engine.name_rules import name_rules
from tpucfg.targets.compute_engine.paths import DOCUMENTS, GROUP, INSTANCE
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import listed


def rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a config's objects: missing ones, names, and those of hosts and groups."""
    yield from _object_rules(body)
    yield from name_rules(body)
    yield from host_rules(body)
    yield from group_rules(body, catalog)


def _object_rules(body: RequestBody) -> Iterator[Problem]:
    if GROUP not in body and INSTANCE not in body:
        fix = f"add the document of an {INSTANCE}, or of an {GROUP}"
        yield Problem("TPU071", "no document of the config creates a host", (), fix)
    if INSTANCE in body and len(body) > 1:
        others = listed([key for key in DOCUMENTS if key in body and key != INSTANCE], last=" and ")
        yield service_problem((INSTANCE,), f"it is one more host beside {others}", "delete one of them", at_key=True)
