"""The rules of Compute Engine for a group: its mode, the objects that it refers to, its size and failures."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from tpucfg.catalog import Catalog
from tpucfg.paths import value_at
from tpucfg.schemas import Problem
from tpucfg.targets.common import service_problem
from tpucfg.targets.compute_engine import pages
from tpucfg.targets.compute_engine.config_hosts import integer
from tpucfg.targets.compute_engine.host_rules import generation_of
from tpucfg.targets.compute_engine.name_rules import is_name
from tpucfg.targets.compute_engine.paths import COLLECTIONS, GROUP, POLICY, TEMPLATE
from tpucfg.targets.compute_engine.references import POLICY_PATH, Reference, references_of
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import format_value, listed

_CUBE_AXES: Final = 3


def group_rules(body: RequestBody, catalog: Catalog) -> Iterator[Problem]:
    """Yield the problems of a policy, of a group and of its references to the other objects."""
    yield from _policy_rules(body)
    group = body.get(GROUP)
    if group is None:
        return
    policy = group.get("resourcePolicies", {}).get("workloadPolicy")
    if policy is not None and group.get("targetSizePolicy", {}).get("mode") != "BULK":
        message = f"the hosts of a slice are created at once, in the mode BULK: {pages.BULK}"
        yield service_problem((GROUP, "targetSizePolicy", "mode"), message, "set it to BULK")
    if len(group.get("versions", ())) > 1:
        message = f"a group in the mode BULK has one version: {pages.BULK}"
        yield service_problem((GROUP, "versions"), message, "delete all but one")
    yield from _missing_references(body, group)
    references = tuple(references_of(group))
    for reference in references:
        yield from _wrong_reference(body, reference)
    yield from _other_places(references)
    yield from _size_rules(body, group, catalog)
    yield from _failure_rules(body, group)


def _missing_references(body: RequestBody, group: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield an error for a policy of the config that the group does not use, and for a group without a template."""
    if POLICY in body and value_at(body, POLICY_PATH) is None:
        message = f"it is missing, so the hosts would not form the slice of the {POLICY}: {pages.GROUPS_OF_TPUS}"
        yield service_problem(POLICY_PATH, message, f"set it to {_form(body, POLICY)}")
    elif group["targetSize"] > 1 and value_at(body, POLICY_PATH) is None:
        message = f"it is missing, so the {group['targetSize']} hosts would form no slice: {pages.GROUPS_OF_TPUS}"
        fix = f"set it to {_form(body, POLICY)}, and add the {POLICY}, of the type HIGH_THROUGHPUT with a topology"
        yield service_problem(POLICY_PATH, message, fix)
    versions = group.get("versions", ())
    if not group.get("instanceTemplate") and not any("instanceTemplate" in version for version in versions):
        path = (GROUP, "versions")
        message = f"no version of the group has a template to create its hosts from: {pages.GROUPS}"
        yield service_problem(path, message, f"add an item with instanceTemplate: {_form(body, TEMPLATE)}")


def _form(body: RequestBody, key: str) -> str:
    """Return the form of the path of an object, with its name if it is in the config."""
    return f"projects/PROJECT/regions/REGION/{COLLECTIONS[key]}/{body.get(key, {}).get('name', 'NAME')}"


def _wrong_reference(body: RequestBody, reference: Reference) -> Iterator[Problem]:
    """Yield an error for a reference that is no path, or that does not name the object of the same config."""
    path, key, value = reference
    collection, own = COLLECTIONS[key], body.get(key, {}).get("name", "")
    if not reference.name:
        message = f"{format_value(value, quoted=False)} is not the path of an object: {pages.GROUPS}"
        yield service_problem(path, message, f"write {_form({}, key)}")
    # A name that the service refuses is an error itself, and its help is the name in the reference.
    elif is_name(own) and reference.name != own:
        message = f"it names another object than the {key} of this config, {own}"
        yield service_problem(path, message, f"end it with {collection}/{own}")


def _other_places(references: tuple[Reference, ...]) -> Iterator[Problem]:
    """Yield an error for each template in another project or region than the policy: the group is in one region."""
    policy = next((reference for reference in references if reference.key == POLICY), None)
    for reference in references:
        if policy and reference.is_elsewhere(policy):
            message = f"it is in {reference.place}, and the policy in {policy.place}: {pages.GROUPS}"
            yield service_problem(reference.path, message, "name a template in the project and region of the policy")


def _size_rules(body: RequestBody, group: Mapping[str, Any], catalog: Catalog) -> Iterator[Problem]:
    """Yield an error for a topology that the machines do not form, or with other chips than the group's hosts have."""
    topology = value_at(body, (POLICY, "workloadPolicy", "acceleratorTopology"))
    machine = value_at(body, (TEMPLATE, "properties", "machineType"))
    chips = _chips_of(machine, catalog) if isinstance(machine, str) else None
    if chips is None or not topology:  # a missing one is an error of the policy
        return
    known = _topologies_of(machine, catalog)
    if topology not in known and not _has_cubes(topology, known):
        near = [name for name in known if _chips_in(name) == group["targetSize"] * chips]
        message = f"{format_value(topology, quoted=False)} is no topology of {machine}: {pages.GROUPS_OF_TPUS}"
        path = (POLICY, "workloadPolicy", "acceleratorTopology")
        yield service_problem(path, message, f"set it to {listed(near or known, last=' or ')}")
    elif group["targetSize"] * chips != (total := _chips_in(topology)):
        message = f"{topology} has {total} chips, and {group['targetSize']} of {machine} do not"
        fix = f"set it to {total // chips}, or change the topology"
        yield service_problem((GROUP, "targetSize"), message, fix)


def _chips_in(topology: str) -> int:
    return math.prod(map(int, topology.split("x")))


def _has_cubes(topology: str, known: Sequence[str]) -> bool:
    """Return True for a topology of three axes whose sides are multiples of 4: the catalog lacks some of v5p's."""
    sides = [integer(side) or 0 for side in topology.split("x")]
    return len(sides) == known[0].count("x") + 1 == _CUBE_AXES and all(side and side % 4 == 0 for side in sides)


@cache
def _chips_of(machine: str, catalog: Catalog) -> int | None:
    """Return the chips of a machine type; None if the catalog does not have it."""
    generation = generation_of(machine)
    slices = catalog.generation(generation).slices if generation else ()
    machines = (each for slice_ in slices for each in (*slice_.machines, *slice_.named_machines))
    return next((each.chips for each in machines if each.name == machine), None)


@cache
def _topologies_of(machine: str, catalog: Catalog) -> tuple[str, ...]:
    """Return the topologies in the catalog that hosts of a machine type form."""
    slices = catalog.generation(generation_of(machine) or "").slices
    return tuple(
        topology
        for slice_ in slices
        if machine in {each.name for each in (*slice_.machines, *slice_.named_machines)}
        for topology in slice_.topologies
    )


def _policy_rules(body: RequestBody) -> Iterator[Problem]:
    """Yield an error for a policy that does not connect hosts to a slice."""
    policy = body.get(POLICY, {}).get("workloadPolicy", {})
    path = (POLICY, "workloadPolicy")
    if POLICY in body and policy.get("type") != "HIGH_THROUGHPUT":
        message = f"the hosts of a slice need the throughput between them: {pages.GROUPS_OF_TPUS}"
        yield service_problem((*path, "type"), message, "set it to HIGH_THROUGHPUT")
    if POLICY in body and not policy.get("acceleratorTopology"):
        message = f"it is missing, so the hosts would form no slice: {pages.GROUPS_OF_TPUS}"
        yield service_problem((*path, "acceleratorTopology"), message, "add it, such as 4x4")


def _failure_rules(body: RequestBody, group: Mapping[str, Any]) -> Iterator[Problem]:
    model = value_at(body, (TEMPLATE, "properties", "scheduling", "provisioningModel"))
    action = group.get("instanceLifecyclePolicy", {}).get("defaultActionOnFailure")
    if model == "FLEX_START" and action != "DO_NOTHING":
        path = (GROUP, "instanceLifecyclePolicy", "defaultActionOnFailure")
        message = f"a group of flex-start instances does not repair them: {pages.BULK}"
        yield service_problem(path, message, "set it to DO_NOTHING")
