"""Rules about what has no effect: settings that no job reads, and allowances."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from tpucfg.catalog import TARGET_FACTS
from tpucfg.findings import RULES, Finding
from tpucfg.spec import Environment, Project, deletion_help, layer_scope, present_layers
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import Document, KeyPath

_READ_BY_ONE_TARGET: Final = {
    key: target for target, facts in TARGET_FACTS.items() for key in facts.trainer_keys
}
"""The keys of the trainer that only one target reads."""

_OF_CREATED_BUCKETS: Final = ("kms_key", "soft_delete_days", "keep_data")
"""The keys of an environment that only the stack of a bucket's own reads."""

_FOUND_BY_INFRA: Final = frozenset(
    rule.id for rule in RULES.values() if "TPU088" <= rule.id < "TPU100"
)
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
    for environment in project.environments.values():
        yield from _keys_of_other_targets(project, environment)
        yield from _keys_of_created_buckets(project, environment)


def _settings_of_unused_targets(
    project: Project, layer: KeyPath, users: Sequence[Environment]
) -> Iterator[Finding]:
    targets = dict.fromkeys(environment.target for environment in users)
    for path, target in _target_settings(project, layer):
        if target not in targets:
            reason = f"only {target} reads it, and {_other_targets(users, layer)}"
            hint = _move_help(project.document, path, targets) if path[-2] == "targets" else ""
            yield _unused_finding(project, path, reason, hint)


def _move_help(document: Document, path: KeyPath, targets: Iterable[str]) -> str:
    """Return the edit that moves settings of hosts to the first target that has them too; empty if none has.

    Such settings have the same form on each target, but the fields of `extra` are those of a service.
    """
    node = document.node(path)
    keys = {*(node.keys if node else ())} & {*TARGET_FACTS[str(path[-1])].host_settings} - {"extra"}
    for target in targets:
        section: KeyPath = (*path[:-1], target)
        other = document.node(section)
        taken = {*(other.keys if other else ())}
        if shared := [key for key in TARGET_FACTS[target].host_settings if key in keys - taken]:
            return f"move {listed(shared, last=' and ')} to {dotted(section)}, and delete {dotted(path)}"
    return ""


def _target_settings(project: Project, layer: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each setting of a layer that only one target reads, and the target."""
    section: KeyPath = (*layer, "targets")
    node = project.document.node(section)
    yield from (((*section, name), name) for name in (node.keys if node else ()))
    trainer = project.document.node((*layer, "trainer"))
    for key in trainer.keys if trainer else ():
        if key in _READ_BY_ONE_TARGET:
            yield (*layer, "trainer", key), _READ_BY_ONE_TARGET[key]


def _other_targets(users: Sequence[Environment], layer: KeyPath) -> str:
    """Return the clause about the targets of the environments that a layer takes part in."""
    if not layer:
        return "no environment has that target"
    if layer[0] == "environments":
        return f"{users[0].name} is on {users[0].target}"
    return f"no environment with {layer[1]} has that target"


def _unused_module(
    project: Project, layer: KeyPath, users: Sequence[Environment]
) -> Iterator[Finding]:
    """Yield a warning for a module in a layer whose jobs have no package: a container has its own command."""
    path = (*layer, "trainer", "module")
    module = project.document.node(path)
    if module is None or module.value is None:
        return
    _, own_size = layer_scope(layer)
    jobs = [(user.name, size) for user in users for size in user.sizes if own_size in (None, size)]
    if all(project.settings[job].trainer.package is None for job in jobs):
        yield _unused_finding(
            project, path, "only a Python package is run by its module, and no package is set"
        )


def _keys_of_other_targets(project: Project, environment: Environment) -> Iterator[Finding]:
    for target, facts in TARGET_FACTS.items():
        for key in facts.environment_keys if environment.target != target else ():
            reason = f"only {target} reads it, and {environment.name} is on {environment.target}"
            if project.document.node((*environment.path, key)):
                yield _unused_finding(project, (*environment.path, key), reason)


def _keys_of_created_buckets(project: Project, environment: Environment) -> Iterator[Finding]:
    """Yield a warning for each setting of a bucket that the stack neither creates nor changes."""
    for key in () if environment.creates_bucket else _OF_CREATED_BUCKETS:
        path = (*environment.path, key)
        if project.document.node(path):
            reason = f"{dotted((*environment.path, 'bucket', 'create'))} is false, and the stack changes no such bucket"
            yield _unused_finding(project, path, reason)


def _unused_finding(project: Project, path: KeyPath, reason: str, hint: str = "") -> Finding:
    """Return the warning about a setting, whose help deletes it unless another edit is given."""
    message = f"{dotted(path)} has no effect: {reason}"
    return project.document.finding(
        "TPU061", message, path, at_key=True, help=hint or deletion_help(project.document, path)
    )


def unused_allowances(project: Project, findings: Collection[Finding]) -> Iterator[Finding]:
    """Yield a warning for each id that the spec allows and that did not occur, or not at the place."""
    occurred = {
        each.id
        for each in findings
        if each.id in project.allow and project.allow[each.id].covers(each.location)
    }
    known = {*occurred, *_FOUND_BY_INFRA, *_FOUND_IN_RESULTS, *_FOUND_BESIDE_OTHERS}
    for id_ in project.allow:
        if id_ not in known:
            message, hint = f"{id_} is allowed and did not occur", f"delete allow.{id_}"
            yield project.document.finding(
                "TPU013", message, ("allow", id_), at_key=True, help=hint
            )
