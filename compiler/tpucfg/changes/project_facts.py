"""The facts of a spec beside its jobs: names, training, gate, allowed rules, prices, and the environments."""

from collections.abc import Iterator
from typing import Any, Final, get_args

from tpucfg.changes.facts import Fact, Scope
from tpucfg.changes.revisions import CompiledRevision
from tpucfg.findings import errors
from tpucfg.paths import KeyPath
from tpucfg.plan.naming import bucket_of
from tpucfg.plan.rung import flag_name
from tpucfg.spec.project import Environment, Prices, Project, Training
from tpucfg.spec.settings import CapacityKind

_SPEC: Final = Scope()
_CAPACITIES: Final[tuple[CapacityKind, ...]] = get_args(CapacityKind)
_TRAINING: Final = ("tuned_on", "model_parallel", "grad_accum", "batch_rule", "sequence_length")


def project_facts(revision: CompiledRevision, other: CompiledRevision) -> list[Fact]:
    """Return the facts of a revision; `other` is the one that it is compared with."""
    facts = [Fact(_SPEC, ("allow", rule), reason) for rule, reason in allowed(revision, other).items()]
    if (project := revision.project) is None or other.project is None:
        return facts
    facts += [Fact(_SPEC, name, value) for name, value in _of_spec(revision, project)]
    facts += [Fact(_SPEC, name, text) for name, text in _prices(project.prices, other.project.prices)]
    facts += [Fact(_SPEC, ("flag", figure), flag) for figure, flag in _flags(project.training, other.project.training)]
    for environment in project.environments.values():
        if environment.name in other.environments:
            facts += environment_facts(project, environment)
    return facts


def allowed(revision: CompiledRevision, other: CompiledRevision) -> dict[str, str]:
    """Return the reasons for which a revision allows rules.

    A base with errors has no project, but it allows no rule that is an error in it.
    """
    if revision.project:
        return dict(revision.project.allow)
    rules = other.project.allow if other.project and revision.is_broken else {}
    refused = {finding.id for finding in errors(revision.findings)}
    return {rule: reason for rule, reason in rules.items() if rule not in refused}


def _of_spec(revision: CompiledRevision, project: Project) -> Iterator[tuple[KeyPath, Any]]:
    yield ("project", "name"), project.name
    yield ("project", "spec"), revision.snapshot.renamed_from or revision.snapshot.repository_path
    for key in _TRAINING:
        if (value := getattr(project.training, key)) is not None:
            yield ("training", key), value
    if rate := project.training.learning_rate:
        yield ("training", "learning_rate"), rate.text
        yield ("training", "learning_rate_rule"), project.training.learning_rate_rule
    for key, value in (project.gate._asdict() if project.gate else {}).items():
        if value is not None and value is not False:
            yield ("gate", key), value


def _prices(prices: Prices, others: Prices) -> Iterator[tuple[KeyPath, str]]:
    """Yield the prices by capacity, or one for all capacities of a generation if no revision distinguishes them."""
    for generation, by_kind in prices.items():
        is_one = all(len({*known.get(generation, {}).values()}) <= 1 for known in (prices, others))
        if is_one and all(len(known.get(generation, _CAPACITIES)) == len(_CAPACITIES) for known in (prices, others)):
            yield ("price", generation), next(iter(by_kind.values())).text
        else:
            yield from ((("price", generation, kind), price.text) for kind, price in by_kind.items())


def _flags(training: Training, other: Training) -> Iterator[tuple[str, str | None]]:
    """Yield the flag of each figure that both revisions may have; None if the program does not get it."""
    for figure in ("batch_size", "train_steps", "epochs", "learning_rate", *{**training.steps, **other.steps}):
        flag = flag_name(training, figure)
        yield figure, f"--{flag}" if flag else None


def environment_facts(project: Project, environment: Environment) -> Iterator[Fact]:
    """Yield the facts of an environment."""
    values = {
        "project": environment.project,
        "region": environment.region,
        "target": environment.target,
        "bucket": bucket_of(project, environment),
        "protect": environment.protect,
        "keep_data": environment.keep_data,
        "kube_context": environment.kube_context,
    }
    scope = Scope(environment.name)
    yield from (Fact(scope, ("environment", key), value) for key, value in values.items() if value is not None)
    yield from (Fact(scope, ("label", key), value) for key, value in environment.labels.items())
