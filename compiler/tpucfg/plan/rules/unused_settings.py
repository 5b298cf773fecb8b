"""Rules about what has no effect: settings that no job reads, settings of hosts on another target, and allowances."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import RULES, Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.selection import SelectedSizes
from tpucfg.spec import Environment, Project, deletion_help, layer_paths, layer_scope, present_layers
from tpucfg.text_format import dotted, listed, yaml_example
from tpucfg.yamldoc import Document, KeyPath

_READ_BY_ONE_TARGET: Final = {
    ("trainer", key): target for target, facts in TARGET_FACTS.items() for key in facts.trainer_keys
}
"""The keys of the trainer that only one target reads."""

_OF_CREATED_BUCKETS: Final = ("kms_key", "soft_delete_days", "keep_data")
"""The keys of an environment that only the stack of a bucket's own reads."""

_FOUND_BY_INFRA: Final = frozenset(rule.id for rule in RULES.values() if "TPU088" <= rule.id < "TPU100")
"""Findings about a stack's resources, which only `tpucfg infra` and `tpucfg review` report."""


_FOUND_IN_RESULTS: Final = frozenset(("TPU106", "TPU108", "TPU129"))
"""Findings about compiled steps and records, which depend on files that a commit of the spec need not have."""
_FOUND_BESIDE_OTHERS: Final = frozenset(("TPU126",))
"""Findings about a spec and another one, which need not be given with it."""


def unused_settings(project: Project) -> Iterator[Finding]:
    """Yield a warning for each setting that no job reads.

    The result is valid only for a check of every environment, each on the target that the spec sets.
    """
    for layer in present_layers(project.document):
        if users := project.users_of(layer):
            yield from _settings_of_unused_targets(project, layer, users)
            yield from _unused_module(project, layer, users)
    yield from _unused_rate_rule(project)
    for environment in project.environments.values():
        yield from _keys_of_other_targets(project, environment)
        yield from _keys_of_created_buckets(project, environment)


def _settings_of_unused_targets(project: Project, layer: KeyPath, users: Sequence[Environment]) -> Iterator[Finding]:
    targets = dict.fromkeys(environment.target for environment in users)
    for path, target in _target_settings(project, layer):
        if target not in targets:
            reason = f"only {target} reads it, and {_other_targets(users, layer)}"
            hint = rename_help(project.document, path, targets) if path[-2] == "targets" else ""
            yield _unused_finding(project, path, reason, hint)


def _target_settings(project: Project, layer: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each setting of a layer that only one target reads, and the target."""
    section: KeyPath = (*layer, "targets")
    node = project.document.node(section)
    yield from (((*section, name), name) for name in (node.keys if node else ()))
    for key, target in _READ_BY_ONE_TARGET.items():
        if project.document.node((*layer, *key)):
            yield (*layer, *key), target


def _other_targets(users: Sequence[Environment], layer: KeyPath) -> str:
    """Return the clause about the targets of the environments that a layer takes part in."""
    if not layer:
        return "no environment has that target"
    if layer[0] == "environments":
        return f"{users[0].name} is on {users[0].target}"
    return f"no environment with {layer[1]} has that target"


def _unused_module(project: Project, layer: KeyPath, users: Sequence[Environment]) -> Iterator[Finding]:
    """Yield a warning for a module in a layer whose jobs have no package: a container has its own command."""
    path = (*layer, "trainer", "module")
    module = project.document.node(path)
    if module is None or module.value is None:
        return
    _, own_size = layer_scope(layer)
    jobs = [(user.name, size) for user in users for size in user.sizes if own_size in (None, size)]
    if all(project.settings[job].trainer.package is None for job in jobs):
        yield _unused_finding(project, path, "only a Python package is run by its module, and no package is set")


def _keys_of_other_targets(project: Project, environment: Environment) -> Iterator[Finding]:
    for target, facts in TARGET_FACTS.items():
        for key in facts.environment_keys:
            path = (*environment.path, key)
            if environment.target != target and project.document.node(path):
                reason = f"only {target} reads it, and {environment.name} is on {environment.target}"
                yield _unused_finding(project, path, reason)


def _keys_of_created_buckets(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield a warning for each setting of a bucket that the stack neither creates nor changes."""
    for key in () if environment.creates_bucket else _OF_CREATED_BUCKETS:
        path = (*environment.path, key)
        if project.document.node(path):
            reason = f"{dotted((*environment.path, 'bucket', 'create'))} is false, and the stack changes no such bucket"
            yield _unused_finding(project, path, reason)


def _unused_rate_rule(project: Project) -> Iterator[Finding]:
    """Yield a warning for a rule that scales the learning rate with the batch, if no rung has another batch."""
    training = project.training
    has_batch = any(override.batch_size for override in project.overrides.values())
    if training.learning_rate_rule != "keep" and training.batch_rule == "keep" and not has_batch:
        reason = "it scales the rate with the batch, and training.batch_rule keeps the batch on every rung"
        yield _unused_finding(project, ("training", "learning_rate_rule"), reason)


def _unused_finding(project: Project, path: KeyPath, reason: str, hint: str = "") -> Finding:
    """Return the warning about a setting, whose help deletes it unless another edit is given."""
    message = f"{dotted(path)} has no effect: {reason}"
    hint = hint or deletion_help(project.document, path)
    return Finding.of("TPU061", message, project.document.key_location(path), help=hint)


def unused_allowances(project: Project, findings: Collection[Finding]) -> Iterator[Finding]:
    """Yield a warning for each id that the spec allows and that did not occur, or not at the place."""
    occurred = {
        each.id for each in findings if each.id in project.allow and project.allow[each.id].covers(each.location)
    }
    known = {*occurred, *_FOUND_BY_INFRA, *_FOUND_IN_RESULTS, *_FOUND_BESIDE_OTHERS}
    for id_ in project.allow:
        if id_ not in known:
            location = project.document.key_location(("allow", id_))
            yield Finding.of("TPU013", f"{id_} is allowed and did not occur", location, help=f"delete allow.{id_}")


# The edit that brings the settings of one target to another, whose settings have the same names and forms.

OWN_FIELDS: Final = "extra"
"""The setting that every target has, and whose fields are those of its own messages."""
_OTHER_FIELDS: Final = "its fields are those of other objects"
LEFT_BEHIND: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("cloud-tpu", "compute-engine"): {
        "runtime_version": "the image is Google's newest for the generation",
        "max_wait": "Compute Engine limits the wait itself",
        OWN_FIELDS: _OTHER_FIELDS,
    },
    ("compute-engine", "cloud-tpu"): {
        "disk_gb": "the service decides the size of the boot disk",
        OWN_FIELDS: _OTHER_FIELDS,
    },
}
"""The settings that cannot come along, with the reason, by the old and the new target; all others can, as they are."""


def rename_help(document: Document, path: KeyPath, targets: Iterable[str]) -> str:
    """Return the edit for settings of a target that no environment has: their new name, or else their deletion.

    Args:
        document: The spec.
        path: The path of the settings, which ends with the name of their target.
        targets: The targets that the environments have instead.
    """
    old = str(path[-1])
    new = next((name for name in targets if (old, name) in LEFT_BEHIND), None)
    node = document.node(path)
    if new is None or node is None or not isinstance(node.value, dict):
        return deletion_help(document, path)
    reasons = LEFT_BEHIND[old, new]
    new_path = (*path[:-1], new)
    present = document.node(new_path)
    has_new = present is not None and isinstance(present.value, dict)
    taken = present.value if present is not None and has_new else {}
    movable = [key for key in node.value if key not in reasons and key not in taken]
    if not movable:
        return deletion_help(document, path)
    if has_new:
        keys = listed(movable, last=" and ")
        return f"move {keys} to {dotted(new_path)}, and delete {dotted(path)}"
    left = [f"{key} ({reasons[key]})" for key in node.value if key in reasons]
    without = f", without {listed(left, last=' and ')}" if left else ""
    return f"rename {dotted(path)} to {dotted(new_path)}{without}"


# Settings of hosts, such as a closed network, under a target that the jobs no longer have.
#
# Targets that create hosts have settings of the same name and meaning, but each reads its own. A change of target opens
# hosts that the old settings closed, and takes their disks; no message of the service mentions that.

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
