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
    becomes,
    changed,
    falls,
    is_set,
    loss,
    removed,
    rises,
    sentence,
    was,
)
from tpucfg.changes.job_meanings import JOB_MEANINGS, addresses
from tpucfg.findings import RULES
from tpucfg.number_format import format_factor
from tpucfg.spec.project import Number

_FAR: Final = 100
"""A factor that is too large for one step of a learning rate."""


# Conditions


def _destroy(change: FactChange, _: Comparison) -> tuple[str, ...]:
    return (f"pulumi destroy --stack {change.scope.environment}",)


def _is_error(change: FactChange, _: Comparison) -> bool:
    return change.before is ABSENT and RULES[str(change.name[1])].level == "error"


def _lower_price(change: FactChange, comparison: Comparison) -> bool:
    return changed(change, comparison) and Number.read(change.after).value < Number.read(change.before).value


def _far(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Apply to a figure that is 100 or more times the one before, or a hundredth of it or less."""
    factor = change.after / change.before if changed(change, comparison) and change.before else 1
    return () if Fraction(1, _FAR) < factor < _FAR else (format_factor(Fraction(factor)),)


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
    return () if _other_bucket(change, comparison) else comparison.pair(change.scope, "environment", "bucket")[1:]


def _selects_cluster(change: FactChange, comparison: Comparison) -> bool:
    target = comparison.pair(change.scope, "environment", "target")[1]
    return target is not ABSENT and "kube_context" in TARGET_FACTS[target].environment_keys


# The table


_GATE: Final = "gate changed"
_LOWER_LIMITS: Final = ("min_scaling_efficiency",)
"""Conditions of the gate that become stricter if they rise."""
_PRICES: Final = "prices changed"
_NOT_COUNTED: Final = "costs are computed from prices that the base has, as another could hide what the change costs"
_DATA_DELETED: Final = "data deleted"
_BUCKET: Final = "bucket changed from {before} to {after}: jobs find only what is in the new one, and "
_OTHER_CLUSTER: Final = "jobs are submitted to another cluster"
_TRAINING: Final = (
    sentence("rung.above", "added to the ladder, with {after} the cores of {before}, the rung below"),
    sentence("rung.replacing", "replaces {before}, with {after} its cores"),
    sentence("rung.removed", "removed from the ladder"),
    sentence(
        "figure.learning rate",
        "{label} is {} the previous value: the run can diverge, or learn nothing",
        _far,
        Risk.CAUTION,
    ),
    Meaning("figure.**", is_silent=True),
    sentence("training.tuned_on", "{label} changed from {before} to {after}: all rungs are rescaled"),
    Meaning("training.learning_rate", when=changed, is_silent=True),
    Meaning("training.learning_rate_rule", when=lambda *args: not changed(*args), is_silent=True),
    sentence("flag.*", "{label} is no longer passed to the program (was {before})", becomes(None), Risk.CAUTION),
    sentence("flag.*", "{label} is now passed to the program as {after}", was(None)),
    sentence("flag.*", "flag for {label} changed from {before} to {after}"),
)
_SPEC: Final = (
    sentence(
        "project.name",
        "project renamed from {before} to {after}: its buckets, service accounts and jobs get new names, and the new "
        "accounts the access of the old ones",
        risk=Risk.ACCESS,
        headline="project renamed",
    ),
    sentence("project.spec", "spec moved from {before} to {after}: results and stacks are those of its new folder"),
    sentence("allow.**", "{label}, an error, is now allowed ({after})", _is_error, Risk.CAUTION, "{label} allowed"),
    sentence("allow.**", "{label} is now allowed ({after})", added, headline="{label} allowed"),
    sentence("allow.**", "{label} is no longer allowed", removed, headline="{label} no longer allowed"),
    sentence("allow.**", "reason for allowing {label} changed from {before} to {after}"),
    Meaning("probe.steps", subject="steps of probes"),
    *addresses("probe.argument.*"),
    Meaning("probe.argument.*", subject="argument of probes"),
    *addresses("tune.**"),
    Meaning("tune.**", subject="searched value"),
    Meaning("gate.*", Risk.NONE, "the gate is stricter", _is_stricter, _GATE),
    Meaning("gate.*", Risk.CAUTION, "the gate is less strict, or another one", headline=_GATE),
    # With a lower price, or none, everything looks cheaper.
    Meaning("price.**", Risk.CAUTION, _NOT_COUNTED, lambda *args: not changed(*args), _PRICES),
    Meaning("price.**", Risk.CAUTION, "everything looks cheaper", _lower_price, _PRICES),
    Meaning("price.**", headline=_PRICES),
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
    Meaning("bucket of others", is_silent=True),
    sentence("environment", "removed from the spec: its stack keeps all resources until you run {}", _destroy),
    loss(
        "protected environment",
        "removed from the spec while protected: its stack keeps all resources, and Pulumi refuses to delete them",
        "protected resources left behind",
    ),
    sentence(
        "environment.bucket",
        f"{_BUCKET}jobs lose the access that the stack gave them to the old one",
        _was_of_others,
        Risk.CAUTION,
    ),
    sentence(
        "environment.bucket",
        f"{_BUCKET}the old one stays with its objects, and is still billed",
        _keeps_bucket,
        Risk.CAUTION,
    ),
    loss("environment.bucket", f"{_BUCKET}the old one is deleted with its objects", _DATA_DELETED),
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
    Meaning(
        "environment.project",
        Risk.CAUTION,
        "jobs run in another project, which pays for them, and act as its accounts",
    ),
    Meaning(
        "environment.region",
        Risk.CAUTION,
        "the bucket {} is the same, and cannot move: pulumi up ends unless it is in the new region already, and jobs "
        "would read and write across regions",
        _bucket_stays,
    ),
    Meaning("environment.kube_context", Risk.CAUTION, _OTHER_CLUSTER, _selects_cluster),
    Meaning("environment.cluster", Risk.CAUTION, _OTHER_CLUSTER, _selects_cluster),
    Meaning("environment.existing_bucket", when=_other_bucket, is_silent=True),
    sentence(
        "environment.existing_bucket",
        "the bucket leaves the stack, which only grants access to it: it is kept with its objects",
        all_of(added, _had("keep_data")),
    ),
    loss(
        "environment.existing_bucket",
        "the bucket leaves the stack, which deletes it with its objects",
        _DATA_DELETED,
        added,
    ),
    sentence("environment.existing_bucket", "the stack makes the bucket: one that exists has to be imported"),
    Meaning("environment.kms_key", Risk.CAUTION, "objects are encrypted by another key from now on"),
    Meaning("environment.soft_delete_days", Risk.CAUTION, "deleted objects can be restored for fewer days", falls),
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
_COMPILED: Final = ("step to compile", "Python of the compiled step")
_MACHINES: Final = ("capacity", "machine type", "topology", "zone", "exit codes", "maximum run duration")
_NETWORK: Final = ("host_network", "external_ips", "network", "subnetwork", "tags.*")
_ACCOUNTS: Final = ("service_account", "node_service_account", "image_pull_secrets.*")
_PLACEMENT: Final = ("queue", "priority", "compute_class", "topology_aware", "placement_policy", "machine", "master")
_HOSTS: Final = ("disk_gb", "runtime_version", "max_wait", "ttl", "containers_per_host")
_PLACES: Final = ("region", "target", "kube_context", "cluster")
_RULES: Final = ("model_parallel", "grad_accum", "batch_rule", "sequence_length", "learning_rate_rule")
_HARMLESS: Final = {
    "": (*_PROGRAM, *_COMPILED, *_MACHINES),
    **dict.fromkeys(("argument", "variable", "XLA flag", "secret", "mount", "label", "fallback"), ("*",)),
    "option": (*_NETWORK, *_ACCOUNTS, *_PLACEMENT, *_HOSTS),
    "environment": (*_PLACES, "soft_delete_days", "images", "protect", "keep_data"),
    "bucket to read": ("*",),
    "training": ("learning_rate", *_RULES),
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
