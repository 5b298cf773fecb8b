"""Rule about settings of hosts, such as a closed network, that another target has than the one of the jobs.

Targets that create hosts have settings of the same name and meaning, but each reads its own: a change of target opens
hosts that the old settings closed, and takes their disks, and no message of the service mentions that.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import Finding
from tpucfg.plan.rules.target_settings import OWN_FIELDS
from tpucfg.plan.selection import SelectedSizes
from tpucfg.spec import Environment, Project, layer_paths
from tpucfg.text_format import dotted, listed, yaml_example
from tpucfg.yamldoc import KeyPath

NO_LOSS: Final[Mapping[str, tuple[Any, ...]]] = {
    "external_ips": (True,),
    "network": ("default",),
    "tags": ([],),
    "data_disks": ([],),
    "extra": ({},),
}
"""The values that limit and add nothing."""
_NETWORK: Final = ("network", "subnetwork")
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "external_ips": "get addresses on the internet",
    "network": "are in the network default",
    "subnetwork": "are in another subnetwork",
    "tags": "have no tags for firewall rules",
    "service_account": "act as the stack's own account",
    "data_disks": "have no data disks",
    OWN_FIELDS: f"lack what {OWN_FIELDS} adds",
}
"""The consequence for hosts without each setting."""


class _Loss(NamedTuple):
    """Settings of one layer and one target that jobs on another target do not get."""

    section: KeyPath
    """The path of the settings."""
    target: str
    """The target of the jobs."""
    keys: tuple[str, ...]


def host_setting_findings(project: Project, selected: SelectedSizes) -> Iterator[Finding]:
    """Yield a warning for the settings of another target that the selected jobs' own target has too, and are unset.

    An explicit value in the settings of the own target, or null, is a decision. The rule does not depend on TPU061,
    which reports settings of a target that no environment has: it may be allowed, and the hosts are open all the same.
    """
    losses: dict[_Loss, dict[str, None]] = {}
    for environment, sizes in selected:
        for loss in _losses(project, environment, sizes):
            losses.setdefault(loss, {})[environment.name] = None
    yield from (_finding(project, loss, tuple(names)) for loss, names in losses.items())


def _losses(project: Project, environment: Environment, sizes: tuple[str, ...]) -> Iterator[_Loss]:
    target = environment.target
    own_keys = TARGET_FACTS[target].host_settings
    lost: dict[KeyPath, dict[str, None]] = {}
    for size in sizes if own_keys else ():
        settings = project.settings[environment.name, size]
        decided = _decided(project, environment, size)
        for other in settings.targets:
            for key in TARGET_FACTS[other].host_settings if other != target else ():
                value = settings.targets[other].get(key)
                if value is not None and value not in NO_LOSS.get(key, ()) and key in own_keys and key not in decided:
                    lost.setdefault(settings.source(("targets", other, key))[:-1], {})[key] = None
    yield from (_Loss(section, target, tuple(keys)) for section, keys in lost.items())


def _decided(project: Project, environment: Environment, size: str) -> set[str]:
    """Return the settings of the jobs' target that any layer sets, even to null; a subnetwork is in one network."""
    sections = ((*layer, "targets", environment.target) for layer in layer_paths(environment.name, size))
    decided = {key for section in sections if (node := project.document.node(section)) for key in node.keys}
    return decided | {*_NETWORK} if decided & {*_NETWORK} else decided


def _finding(project: Project, loss: _Loss, environments: tuple[str, ...]) -> Finding:
    section, target, keys = loss
    node = project.document.node(section)
    values = node.value if node else {}
    names = listed(environments, last=" and ")
    effects = [_CONSEQUENCES[key] for key in keys if key != "subnetwork" or "network" not in keys]
    message = (
        f"{dotted(section)} has {listed(keys, last=' and ')}, which {target} does not read: in {names}, hosts "
        f"{listed(effects, last=' and ')}"
    )
    return Finding.of(
        "TPU120",
        message,
        project.document.key_location((*section, keys[0])),
        help=_edit(project, (*section[:-1], target), {key: values[key] for key in keys}),
        details=(f"null under targets.{target} accepts the default; see: tpucfg explain TPU120",),
    )


def _edit(project: Project, section: KeyPath, values: Mapping[str, Any]) -> str:
    """Return the edit that gives a section the values; the fields of `extra` are those of other objects."""
    has_section = project.document.node(section) is not None
    pairs = [f"{key}: {yaml_example(value)}" for key, value in values.items() if key != OWN_FIELDS]
    edits = []
    if pairs and has_section:
        edits.append(f"add {listed(pairs, last=' and ')} to {dotted(section)}")
    elif pairs:
        edits.append(f"set {dotted(section)} to {{{', '.join(pairs)}}}")
    if OWN_FIELDS in values:
        extra = dotted((*section, OWN_FIELDS))
        edits.append(f"set {extra} to the same fields of its own objects, or to null")
    return ", and ".join(edits)
