"""The meaning of changed facts of a spec beside its jobs: training, gate, prices, environments."""

from fractions import Fraction
from typing import Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.facts import ABSENT, FactChange
from tpucfg.changes.meanings import Comparison, Condition, Meaning, added, becomes, changed, removed
from tpucfg.changes.statements import Risk
from tpucfg.findings import RULES
from tpucfg.spec.project import Number

LIFTED: Final = "protection lifted"
"""The headline of lifted protection, which the summary omits if a resource already shows it."""
_TRAINING: Final = ("model_parallel", "grad_accum", "batch_rule", "sequence_length")
_NOT_COUNTED: Final = "the costs below do not count it, as it could hide what the change costs"
_BUCKET: Final = "bucket changed from {before} to {after}: "


def _is_error(change: FactChange, _: Comparison) -> bool:
    return change.before is ABSENT and RULES[str(change.name[1])].level == "error"


def _rises(change: FactChange, _: Comparison) -> bool:
    return _are_numbers(change) and change.after > change.before


def _falls(change: FactChange, _: Comparison) -> bool:
    return _are_numbers(change) and change.after < change.before


def _are_numbers(change: FactChange) -> bool:
    return all(isinstance(value, int | float) for value in (change.before, change.after))


def _lower_price(change: FactChange, _: Comparison) -> bool:
    return ABSENT not in (change.before, change.after) and _price(change.after) < _price(change.before)


def _price(text: str) -> Fraction:
    return Number.read(text).value


def _was(key: str) -> Condition:
    """Return a condition that applies to an environment that had a setting."""
    return lambda change, comparison: comparison.pair(change.scope, "environment", key)[0] is True


def _selects_cluster(change: FactChange, comparison: Comparison) -> bool:
    target = comparison.pair(change.scope, "environment", "target")[1]
    return target is not ABSENT and "kube_context" in TARGET_FACTS[target].environment_keys


PROJECT_MEANINGS: Final = (
    Meaning(
        "project.name",
        sentence="project renamed from {before} to {after}: its buckets, service accounts and jobs get new names",
    ),
    Meaning(
        "project.spec",
        sentence="spec moved from {before} to {after}: results and stacks are those of its new folder",
    ),
    Meaning("training.tuned_on", sentence="{label} changed from {before} to {after}: all rungs are rescaled"),
    Meaning("training.learning_rate", when=changed, is_silent=True),
    *(Meaning(f"training.{key}", subject=key) for key in _TRAINING),
    Meaning("training.learning_rate", subject="learning rate"),
    Meaning("training.learning_rate_rule", when=changed, subject="learning rate rule"),
    Meaning("training.learning_rate_rule", is_silent=True),
    Meaning(
        "flag.*",
        Risk.CAUTION,
        when=lambda change, _: change.after is None,
        sentence="{label} is no longer passed to the program (was {before})",
    ),
    Meaning(
        "flag.*",
        when=lambda change, _: change.before is None,
        sentence="{label} is now passed to the program as {after}",
    ),
    Meaning("flag.*", subject="flag for"),
    # What the spec allows, and the gate between rungs
    Meaning(
        "allow.*",
        Risk.CAUTION,
        when=_is_error,
        headline="{label} allowed",
        sentence="{label}, an error, is now allowed ({after})",
    ),
    Meaning("allow.*", when=added, headline="{label} allowed", sentence="{label} is now allowed ({after})"),
    Meaning("allow.*", when=removed, headline="{label} no longer allowed", sentence="{label} is no longer allowed"),
    Meaning("allow.*", sentence="reason for allowing {label} changed from {before} to {after}"),
    Meaning(
        "gate.fit",
        Risk.CAUTION,
        "a rung may run whose step does not fit, or was never compiled",
        removed,
        "gate changed",
        "gate.fit",
    ),
    Meaning("gate.fit", headline="gate changed", sentence="gate.fit set: rungs now need a step that is known to fit"),
    Meaning("gate.*", Risk.CAUTION, "rungs need it no longer", removed, "gate changed"),
    Meaning("gate.*", consequence="rungs now need it", when=added, headline="gate changed"),
    Meaning("gate.min_scaling_efficiency", consequence="the gate is stricter", when=_rises, headline="gate changed"),
    Meaning("gate.max_drop", consequence="the gate is stricter", when=_falls, headline="gate changed"),
    Meaning("gate.min_scaling_efficiency", Risk.CAUTION, "the gate is less strict", _falls, "gate changed"),
    Meaning("gate.max_drop", Risk.CAUTION, "the gate is less strict", _rises, "gate changed"),
    Meaning("gate.*", Risk.CAUTION, "rungs pass by another condition", headline="gate changed"),
    # With a lower price, or none, everything looks cheaper.
    Meaning("price.**", Risk.CAUTION, _NOT_COUNTED, added, "prices changed"),
    Meaning("price.**", Risk.CAUTION, "the costs below are still at the price of the base", removed, "prices changed"),
    Meaning("price.**", Risk.CAUTION, "everything looks cheaper", _lower_price, "prices changed"),
    Meaning("price.**", headline="prices changed"),
    # Environments
    Meaning("environment.project", subject="Google Cloud project"),
    Meaning("environment.region", subject="region"),
    Meaning("environment.target", subject="target"),
    Meaning(
        "environment.bucket",
        when=_was("protect"),
        sentence=_BUCKET
        + "jobs use the new bucket, but Pulumi refuses to remove the old one from the stack while it is protected",
    ),
    Meaning(
        "environment.bucket",
        when=_was("keep_data"),
        sentence=_BUCKET + "the new bucket starts empty, and the old one is kept with its objects and still billed",
    ),
    Meaning(
        "environment.bucket",
        Risk.DESTRUCTIVE,
        headline="data deleted",
        sentence=_BUCKET + "the new bucket starts empty, and the old one is deleted with its objects",
    ),
    Meaning(
        "environment.protect",
        Risk.DESTRUCTIVE,
        when=becomes(False),
        headline=LIFTED,
        sentence="protection lifted: resources that hold data can be replaced and deleted",
    ),
    Meaning(
        "environment.protect",
        sentence="protection added: Pulumi refuses to delete or replace resources that hold data",
    ),
    Meaning(
        "environment.keep_data",
        Risk.DESTRUCTIVE,
        when=becomes(False),
        headline="data no longer kept",
        sentence="{label} disabled: a bucket removed from the stack is deleted with its objects",
    ),
    Meaning(
        "environment.keep_data",
        sentence="{label} enabled: a bucket removed from the stack is kept with its objects",
    ),
    Meaning(
        "environment.kube_context",
        Risk.CAUTION,
        "jobs are submitted to another cluster",
        _selects_cluster,
        subject="kubectl context",
    ),
    Meaning("environment.kube_context", subject="kubectl context"),
    Meaning("label.*"),
)
