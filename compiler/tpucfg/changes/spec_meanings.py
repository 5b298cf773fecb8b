"""The meaning of changed facts of a spec, for a reader who judges what its jobs do, reach and cost."""

from fractions import Fraction
from typing import Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.facts import (
    ABSENT,
    Comparison,
    Condition,
    FactChange,
    Meaning,
    Risk,
    access,
    added,
    all_of,
    always,
    becomes,
    caution,
    changed,
    falls,
    is_set,
    kept,
    loss,
    removed,
    rises,
    sentence,
    silent,
    was,
    worse,
)
from tpucfg.changes.job_meanings import JOB_MEANINGS, LESS_SAFE, addresses, is_unsafe
from tpucfg.findings import RULES
from tpucfg.number_format import format_factor
from tpucfg.plan.rules.scaling_warnings import is_checkpoint_interval
from tpucfg.spec.project import SOFT_DELETE_DAYS, Number

_FAR: Final = 100
"""A factor that is too large for one step of a learning rate."""


# Conditions


def _destroy(change: FactChange, _: Comparison) -> tuple[str, ...]:
    return (f"pulumi destroy --stack {change.scope.environment}",)


def _is_error(change: FactChange, _: Comparison) -> bool:
    return change.before is ABSENT and RULES[str(change.name[1])].level == "error"


def _fewer_days(change: FactChange, comparison: Comparison) -> bool:
    old, new = (SOFT_DELETE_DAYS if value is ABSENT else value for value in change.values)
    return kept(change, comparison) and new < old


def _lower_price(change: FactChange, comparison: Comparison) -> bool:
    return (
        changed(change, comparison)
        and Number.read(change.after).value < Number.read(change.before).value
    )


def _is_one_sided(change: FactChange, comparison: Comparison) -> bool:
    return not changed(change, comparison)


def _far(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Apply to a figure that is 100 or more times the one before, or a hundredth of it or less."""
    factor = change.after / change.before if changed(change, comparison) and change.before else 1
    return () if Fraction(1, _FAR) < factor < _FAR else (format_factor(Fraction(factor)),)


def _fewer_checkpoints(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Apply to an interval between checkpoints that is a share of the run at least twice as large as before."""
    steps = comparison.pair(change.scope, "figure", "steps")
    if ABSENT in (*steps, *change.values) or not is_checkpoint_interval(str(change.name[1])):
        return ()
    factor = Fraction(change.before) * steps[1] / (Fraction(change.after) * steps[0])
    return (format_factor(factor),) if 2 * factor <= 1 else ()


def _is_stricter(change: FactChange, comparison: Comparison) -> bool:
    is_stricter = rises if change.name[1] in _LOWER_LIMITS else falls
    return change.before is ABSENT or is_stricter(change, comparison)


def _had(key: str) -> Condition:
    """Return a condition that applies to an environment that had a setting."""
    return lambda change, comparison: comparison.pair(change.scope, "environment", key)[0] is True


def _keeps_bucket(change: FactChange, comparison: Comparison) -> bool:
    return any(_had(key)(change, comparison) for key in ("protect", "keep_data"))


def _was_of_others(change: FactChange, comparison: Comparison) -> bool:
    """Apply to an environment whose stack did not make its bucket."""
    return comparison.pair(change.scope, "environment", "existing_bucket")[0] is True


def _other_bucket(change: FactChange, comparison: Comparison) -> bool:
    """Apply to an environment that is new, or has another bucket than before."""
    old, new = comparison.pair(change.scope, "environment", "bucket")
    return old is ABSENT or old != new


def _bucket_stays(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Apply to an environment that keeps its bucket, and return the bucket's name."""
    return (
        ()
        if _other_bucket(change, comparison)
        else comparison.pair(change.scope, "environment", "bucket")[1:]
    )


def _selects_cluster(change: FactChange, comparison: Comparison) -> bool:
    target = comparison.pair(change.scope, "environment", "target")[1]
    return target is not ABSENT and "kube_context" in TARGET_FACTS[target].environment_keys


# The table


_LOWER_LIMITS: Final = ("min_scaling_efficiency",)
"""Conditions of the gate that become stricter if they rise."""
_NOT_COUNTED: Final = (
    "costs are computed from prices that the base has, as another could hide what the change costs"
)
_BUCKET: Final = (
    "bucket changed from {before} to {after}: jobs find only what is in the new one, and "
)
_LEAVES: Final = "the bucket leaves the stack, which {}"
_OTHER_CLUSTER: Final = "jobs are submitted to another cluster"
_TRAINING: Final = (
    sentence(
        "rung.above", "added to the ladder, with {after} the cores of {before}, the rung below"
    ),
    sentence("rung.replacing", "replaces {before}, with {after} its cores"),
    sentence("rung.removed", "removed from the ladder"),
    worse(
        "figure.learning rate",
        "{label} is {} the previous value: the run can diverge, or learn nothing",
        _far,
    ),
    worse(
        "figure.*",
        "{label}: a run writes {} as many checkpoints, and a failure loses more of it",
        _fewer_checkpoints,
    ),
    silent("figure.**"),
    sentence(
        "training.tuned_on", "{label} changed from {before} to {after}: all rungs are rescaled"
    ),
    silent("training.learning_rate", changed),
    silent("training.learning_rate_rule", _is_one_sided),
    worse("flag.*", "{label} is no longer passed to the program (was {before})", becomes(None)),
    sentence("flag.*", "{label} is now passed to the program as {after}", was(None)),
    worse(
        "flag.*",
        "flag for {label} changed from {before} to {after}: a program that does not know it takes its own value",
    ),
)
_SPEC: Final = (
    sentence(
        "project.name",
        "project renamed from {before} to {after}: buckets, service accounts and jobs get new names, and the new "
        "accounts the access of the old ones",
        risk=Risk.ACCESS,
        headline="project renamed",
    ),
    sentence(
        "project.spec",
        "spec moved from {before} to {after}: results and stacks are those of its new folder",
    ),
    worse("allow.**", "{label}, an error, is now allowed ({after})", _is_error, "{label} allowed"),
    sentence("allow.**", "{label} is now allowed ({after})", added, headline="{label} allowed"),
    sentence(
        "allow.**", "{label} is no longer allowed", removed, headline="{label} no longer allowed"
    ),
    sentence("allow.**", "reason for allowing {label} changed from {before} to {after}"),
    Meaning("probe.steps", subject="steps of probes"),
    *addresses("probe.argument.*"),
    caution("probe.argument.*", LESS_SAFE, is_unsafe),
    Meaning("probe.argument.*", subject="probe argument"),
    *addresses("tune.**"),
    Meaning("tune.**", subject="searched value"),
    Meaning("gate.*", Risk.NONE, "the gate is stricter", _is_stricter, "gate changed"),
    caution("gate.*", "the gate is less strict, or another one", always, "gate changed"),
    # With a lower price, or none, everything looks cheaper.
    caution("price.**", _NOT_COUNTED, _is_one_sided, "prices changed"),
    caution("price.**", "everything looks cheaper", _lower_price, "prices changed"),
    Meaning("price.**", headline="prices changed"),
)
_ENVIRONMENTS: Final = (
    sentence("environment", "new environment: {after}", added),
    sentence("protected environment", "new environment: {after}", added),
    sentence(
        "bucket of others",
        "jobs read and write {after}, a bucket that the stack does not make",
        all_of(is_set, _other_bucket),
        Risk.ACCESS,
        "more access for jobs",
    ),
    silent("bucket of others"),
    sentence(
        "environment",
        "removed from the spec: its stack keeps all resources until you run {}",
        _destroy,
    ),
    loss(
        "protected environment",
        "removed from the spec while protected: its stack keeps all resources, and Pulumi refuses to delete them",
        "protected resources left behind",
    ),
    worse(
        "environment.bucket",
        f"{_BUCKET}lose the access that the stack gave to the old one",
        _was_of_others,
    ),
    worse(
        "environment.bucket",
        f"{_BUCKET}the old one stays with its objects, and is still billed",
        _keeps_bucket,
    ),
    loss("environment.bucket", f"{_BUCKET}the old one is deleted with its objects", "data deleted"),
    loss(
        "environment.protect",
        "protection lifted: resources that hold data can be replaced and deleted",
        "protection lifted",
        becomes(False),
    ),
    loss(
        "environment.keep_data",
        "{label} disabled: a bucket removed from the stack is deleted with its objects",
        "data no longer kept",
        becomes(False),
    ),
    caution(
        "environment.project",
        "jobs run in another project, which pays for them, and act as its accounts",
        always,
    ),
    caution(
        "environment.region",
        "the bucket {} is the same, and cannot move: pulumi up ends unless it is in the new region already, and jobs "
        "would read and write across regions",
        _bucket_stays,
    ),
    caution("environment.kube_context", _OTHER_CLUSTER, _selects_cluster),
    caution("environment.cluster", _OTHER_CLUSTER, _selects_cluster),
    silent("environment.existing_bucket", _other_bucket),
    sentence(
        "environment.existing_bucket",
        _LEAVES.format("only grants access to it: it is kept with its objects"),
        all_of(added, _had("keep_data")),
    ),
    loss(
        "environment.existing_bucket",
        _LEAVES.format("deletes it with its objects"),
        "data deleted",
        added,
    ),
    sentence(
        "environment.existing_bucket",
        "the stack makes the bucket: one that exists has to be imported",
    ),
    caution("environment.kms_key", "objects are encrypted by another key from now on", always),
    caution(
        "environment.soft_delete_days",
        "deleted objects can be restored for fewer days",
        _fewer_days,
    ),
    access("bucket to read.*", "jobs read another bucket"),
)
_PROGRAM: Final = (
    "image",
    "worker image",
    "package",
    "module",
    "arg style",
    "runtime version",
    "Python version",
)
_MACHINES: Final = (
    "capacity",
    "machine type",
    "topology",
    "zone",
    "exit codes",
    "maximum run duration",
)
_COMPILED: Final = ("step to compile", "Python of the compiled step")
_NETWORK: Final = ("host_network", "external_ips", "network", "subnetwork", "tags.*")
_ACCOUNTS: Final = ("service_account", "node_service_account", "image_pull_secrets.*")
_PLACEMENT: Final = (
    "queue",
    "priority",
    "compute_class",
    "topology_aware",
    "placement_policy",
    "machine",
    "master",
)
_HOSTS: Final = ("disk_gb", "runtime_version", "max_wait", "ttl", "containers_per_host")
_PLACES: Final = (
    "region",
    "target",
    "kube_context",
    "cluster",
    "soft_delete_days",
    "images",
    "protect",
    "keep_data",
)
_RULES: Final = (
    "model_parallel",
    "grad_accum",
    "batch_rule",
    "sequence_length",
    "learning_rate",
    "learning_rate_rule",
)
_FREE: Final = (
    "argument",
    "variable",
    "XLA flag",
    "secret",
    "mount",
    "label",
    "fallback",
    "bucket to read",
)
_HARMLESS: Final = {
    "": (*_PROGRAM, *_COMPILED, *_MACHINES),
    **dict.fromkeys(_FREE, ("*",)),
    "option": (*_NETWORK, *_ACCOUNTS, *_PLACEMENT, *_HOSTS),
    "environment": _PLACES,
    "training": _RULES,
}
"""By kind, the facts whose changes have no risk where no other row applies."""
MEANINGS: Final = (
    *JOB_MEANINGS,
    *_TRAINING,
    *_SPEC,
    *_ENVIRONMENTS,
    *(Meaning(f"{kind}.{name}".lstrip(".")) for kind, names in _HARMLESS.items() for name in names),
)
"""All rows about jobs, environments and the spec; the first one that matches and applies decides."""
