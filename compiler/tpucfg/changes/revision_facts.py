"""The facts of a revision: each value that its spec and the plan decide, once, with the layer of the spec that sets it.

Arguments, variables, images and mounts are the texts of the spec, with their placeholders: a value that only follows
the name of a bucket or a size is equal in all jobs, and does not change when that name does.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, get_args

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.config_diff import Difference, config_difference
from tpucfg.changes.facts import Fact, Scope
from tpucfg.changes.figures import rung_numbers
from tpucfg.changes.revisions import CompiledRevision, config_key
from tpucfg.findings import errors
from tpucfg.paths import KeyPath, item_names
from tpucfg.plan import Job
from tpucfg.plan.job import capacity_name
from tpucfg.plan.naming import account_id, bucket_of
from tpucfg.plan.rung import flag_name
from tpucfg.schemas import load_schema
from tpucfg.spec.layers import LAYERED
from tpucfg.spec.project import Environment, Prices, Project, Training, listed_paths
from tpucfg.spec.settings import DEFAULT_PYTHON, Arg, CapacityKind, Duration, Secret, Trainer
from tpucfg.text_format import dotted, format_value, listed

READ_ONLY: Final = "read-only"
"""The value of a disk that the program cannot change."""
_NAMES: Final = {
    "runtime": "runtime version",
    "python": "Python version",
    "max_run_duration": "maximum run duration",
}
"""The names of settings of the trainer, if they are not their keys."""
_MAX_PROGRAMS_LENGTH: Final = 120
"""Characters of the images of a new environment, which leave room for its bucket."""
_CAPACITIES: Final[tuple[CapacityKind, ...]] = get_args(CapacityKind)
_TRAINING: Final = ("tuned_on", "model_parallel", "grad_accum", "batch_rule", "sequence_length")
_SPEC: Final = Scope()


def spec_facts(revision: CompiledRevision, other: CompiledRevision) -> list[Fact]:
    """Return the facts of a revision; `other` is the one that it is compared with."""
    facts = [
        Fact(_SPEC, ("allow", *rule), reason) for rule, reason in allowed(revision, other).items()
    ]
    if not other.is_broken:
        facts += _of_one_revision(revision, other)
    if (project := revision.project) is None or other.project is None:
        return facts
    facts += [Fact(_SPEC, name, value) for name, value in _of_spec(revision, project)]
    facts += [
        Fact(_SPEC, name, text) for name, text in _prices(project.prices, other.project.prices)
    ]
    facts += [
        Fact(_SPEC, ("flag", figure), flag)
        for figure, flag in _flags(project.training, other.project.training)
    ]
    for environment in project.environments.values():
        if environment.name in other.environments:
            facts += _of_environment(project, environment)
    return facts


def allowed(revision: CompiledRevision, other: CompiledRevision) -> dict[tuple[str, ...], str]:
    """Return the reasons for which a revision allows rules, by the rule, and by the place if it holds for one.

    A base with errors has no project, but it allows no rule that is an error in it.
    """
    if revision.project:
        return _reasons(revision.project)
    rules = _reasons(other.project) if other.project and revision.is_broken else {}
    refused = {finding.id for finding in errors(revision.findings)}
    return {rule: reason for rule, reason in rules.items() if rule[0] not in refused}


def _reasons(project: Project) -> dict[tuple[str, ...], str]:
    """Return the reasons of `allow`, by the id of the rule and the place."""
    entries = project.document.data.get("allow", {}).items()
    places = (
        (id_, [()] if isinstance(value, str) else [(path,) for path in listed_paths(value)])
        for id_, value in entries
    )
    return {(id_, *place): project.allow[id_].reason for id_, each in places for place in each}


def _of_spec(revision: CompiledRevision, project: Project) -> Iterator[tuple[KeyPath, Any]]:
    yield ("project", "name"), project.name
    yield ("project", "spec"), revision.snapshot.renamed_from or revision.snapshot.repository_path
    for key in _TRAINING:
        if (value := getattr(project.training, key)) is not None:
            yield ("training", key), value
    if rate := project.training.learning_rate:
        yield ("training", "learning_rate"), rate.text
        yield ("training", "learning_rate_rule"), project.training.learning_rate_rule
    if project.probe:
        yield ("probe", "steps"), project.probe.steps
        args = project.document.data["probe"].get("args") or ()
        words = args.items() if isinstance(args, dict) else ((word, "") for word in args)
        yield from ((("probe", "argument", flag), value) for flag, value in words)
    for key, value in (project.document.data.get("tune") or {}).items():
        named = value.items() if isinstance(value, dict) else [("", value)]
        yield from (
            (("tune", key, name) if name else ("tune", key), value) for name, value in named
        )
    for size, override in project.overrides.items():
        if override.fallback:
            yield ("fallback", size), listed(override.fallback)
    for key, value in (project.gate._asdict() if project.gate else {}).items():
        if value is not None and value is not False:
            yield ("gate", key), value


def _prices(prices: Prices, others: Prices) -> Iterator[tuple[KeyPath, str]]:
    """Yield the prices by capacity, or one for all capacities of a generation if no revision distinguishes them."""
    for generation, by_kind in prices.items():
        is_one = all(len({*known.get(generation, {}).values()}) <= 1 for known in (prices, others))
        if is_one and all(
            len(known.get(generation, _CAPACITIES)) == len(_CAPACITIES)
            for known in (prices, others)
        ):
            yield ("price", generation), next(iter(by_kind.values())).text
        else:
            yield from (
                (("price", generation, kind), price.text) for kind, price in by_kind.items()
            )


def _flags(training: Training, other: Training) -> Iterator[tuple[str, str | None]]:
    """Yield the flag of each figure that both revisions may have; None if the program does not get it."""
    for figure in (
        "batch_size",
        "train_steps",
        "epochs",
        "learning_rate",
        *{**training.steps, **other.steps},
    ):
        flag = flag_name(training, figure)
        yield figure, f"--{flag}" if flag else None


def _of_environment(project: Project, environment: Environment) -> Iterator[Fact]:
    cluster, context = environment.cluster, environment.kube_context
    values = {
        "project": environment.project,
        "region": environment.region,
        "target": environment.target,
        "bucket": bucket_of(project, environment),
        "protect": environment.protect,
        "keep_data": environment.keep_data,
        # The context that gcloud gives the cluster is no second fact.
        "kube_context": None if cluster and context == cluster.context else context,
        "cluster": cluster.path if cluster else None,
        "existing_bucket": not environment.creates_bucket or None,
        "kms_key": environment.kms_key,
        "soft_delete_days": environment.soft_delete_days,
        "images": None if environment.grants_images else "granted by others",
    }
    scope = Scope(environment.name)
    yield from (
        Fact(scope, ("environment", key), value)
        for key, value in values.items()
        if value is not None
    )
    if not environment.creates_bucket:
        yield Fact(scope, ("bucket of others",), values["bucket"])
    yield from (Fact(scope, ("label", key), value) for key, value in environment.labels.items())
    yield from (
        Fact(scope, ("bucket to read", url), region) for url, region in environment.reads.items()
    )


def _of_one_revision(revision: CompiledRevision, other: CompiledRevision) -> Iterator[Fact]:
    """Yield the environments that the other revision does not have, each described by one text, and by its bucket."""
    for name, environment in revision.environments.items():
        if name not in other.environments and revision.project:
            kind = "protected environment" if environment.protect else "environment"
            yield Fact(Scope(name), (kind,), _description(revision.project, environment))
            if not environment.creates_bucket:
                yield Fact(
                    Scope(name), ("bucket of others",), bucket_of(revision.project, environment)
                )


def _description(project: Project, environment: Environment) -> str:
    settings = [project.settings[environment.name, size] for size in environment.sizes]
    trainers = [item.trainer for item in settings]
    programs = dict.fromkeys(
        trainer.image or trainer.package or trainer.module or "none" for trainer in trainers
    )
    capacities = dict.fromkeys(capacity_name(environment.target, item) for item in settings)
    # What runs, and with which data, comes first: a long text is cut at its end where it is shown.
    runs = format_value(listed([*programs]), quoted=False, max_length=_MAX_PROGRAMS_LENGTH)
    place = f"{environment.target} in {environment.project} ({environment.region})"
    machines = f"{listed([*capacities])}, {listed(environment.sizes)}"
    return f"{runs} with the bucket {bucket_of(project, environment)}, {place}, {machines}"


# Jobs


def job_facts(job: Job) -> list[Fact]:
    """Return all facts of a job; the first step of a name is its kind."""
    scope = config_key(job)
    facts = [Fact(scope, ("target",), job.target)]
    facts += [
        Fact(scope, ("figure", name), number.value)
        for name, number in rung_numbers(job.rung).items()
        if number
    ]
    places = {
        "machine type": job.slice.machine.name if job.slice.machine else None,
        "topology": job.slice.topology,
        "zone": job.zone,
    }
    facts += [Fact(scope, (name,), value) for name, value in places.items() if value is not None]
    facts += [Fact(scope, name, value, _layer(job, path)) for name, value, path in _settings(job)]
    return facts


def _layer(job: Job, path: KeyPath) -> str:
    """Return the layer that sets a value, in dotted form; empty for the top of the spec, and for a default."""
    if job.settings.layers.find(*map(str, path)) is None:
        return ""
    source = job.settings.source(path)
    end = next(
        (index for index, step in enumerate(source) if step in (*LAYERED, "args")), len(source)
    )
    return dotted(source[:end], "")


def _settings(job: Job) -> Iterator[tuple[KeyPath, Any, KeyPath]]:
    """Yield the layered settings: the fact's name, its value, and its path in the layers."""
    trainer = job.settings.trainer
    yield ("capacity",), job.capacity_text, ("capacity",)
    yield from _program(job)
    if trainer.fit:
        yield ("step to compile",), trainer.fit.step, ("trainer", "fit", "step")
        if trainer.fit.python != DEFAULT_PYTHON:
            yield ("Python of the compiled step",), trainer.fit.python, ("trainer", "fit", "python")
    yield from _options(job)


def _program(job: Job) -> Iterator[tuple[KeyPath, Any, KeyPath]]:
    """Yield every setting of the trainer that is one value, and each item of those that are several."""
    trainer = job.settings.trainer
    for key, setting in trainer._asdict().items():
        value = setting.text if isinstance(setting, Duration) else setting
        if isinstance(value, str | int):
            yield (_NAMES.get(key, key.replace("_", " ")),), value, ("trainer", key)
    if trainer.exit_codes:
        yield ("exit codes",), trainer.exit_codes.text, ("trainer", "restarts", "exit_codes")
    if trainer.command:
        yield ("command",), shlex.join(trainer.command), ("trainer", "command")
    for arg in trainer.args:
        value = arg.values[0] if len(arg.values) == 1 else [*arg.values]
        yield (
            ("argument", _flag(arg, trainer)),
            value if arg.key else "",
            ("trainer", "args", arg.key),
        )
    for key, text in trainer.env:
        yield ("variable", key), text, ("trainer", "env", key)
    for secret in trainer.secrets:
        text = _reference(secret, job.environment.project)
        yield ("secret", secret.variable), text, ("trainer", "secrets", secret.variable)
    for mount in trainer.mounts:
        yield ("mount", mount.path), mount.source, ("trainer", "mounts", mount.path)
    for flag in trainer.xla_flags.get(job.slice.generation, ()):
        name, _, text = flag.partition("=")
        yield ("XLA flag", name), text, ("trainer", "xla_flags", job.slice.generation)


def _flag(arg: Arg, trainer: Trainer) -> str:
    """Return a flag as the program gets it; a text of a list is its own name."""
    if not arg.key:
        return arg.values[0] or ""
    return arg.key if trainer.arg_style == "key=value" else f"--{arg.key}"


def _reference(secret: Secret, project: str) -> str:
    """Return the reference to a secret as the spec may write it in a Google project, which it need not name."""
    if secret.project in (None, project):
        return f"{secret.name}/{secret.version}"
    return f"projects/{secret.project}/secrets/{secret.name}/versions/{secret.version}"


def _options(job: Job) -> Iterator[tuple[KeyPath, Any, KeyPath]]:
    """Yield the target's own settings, each item of a list and each value of `extra` by itself."""
    defaults = _defaults(job.target)
    for key, value in {**defaults, **job.options}.items():
        path = ("targets", job.target, key)
        if key == "extra":
            yield from ((("field", *field), leaf, path) for field, leaf in _leaves(value or {}, ()))
        elif isinstance(value, list):
            yield from ((("option", key, *name), text, path) for name, text in map(_item, value))
        elif value is None and key in defaults:
            yield ("option", key), "unlimited", path
        elif value not in (None, own_account(job)):
            yield ("option", key), value, path


@cache
def _defaults(target: str) -> Mapping[str, Any]:
    """Return the values that settings of a target have if the spec does not set them."""
    properties = load_schema("tpucfg")["$defs"][target]["properties"]
    return {
        key: schema["default"]
        for key, schema in properties.items()
        if schema.get("default") is not None
    }


def _item(item: Any) -> tuple[KeyPath, str]:
    """Return the name and the value of an item of a list: a name, or a disk."""
    if isinstance(item, dict):
        return (str(item["source"]),), READ_ONLY if item.get("read_only", True) else "read-write"
    return (str(item),), ""


def _leaves(value: Any, path: KeyPath) -> Iterable[tuple[KeyPath, Any]]:
    """Yield the values of a tree; the items of lists of objects by their names, so that an order means nothing."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        names = item_names(value)
        for index, item in enumerate(value):
            if names:  # without what the path has already
                others = {field: part for field, part in item.items() if part != names[index]}
                yield from _leaves(others or item, (*path, names[index]))
            else:
                yield from _leaves(item, (*path, index))
    else:
        yield path, value


def own_account(job: Job) -> str:
    """Return the account that the environment's stack creates for the jobs, as the config names it."""
    if TARGET_FACTS[job.target].runs_pods:
        return account_id(name=job.project, environment=job.environment.name)
    return job.account


# Jobs that differ in their target: the request bodies of two services have hardly a field in common


_ACCOUNT: Final = "service_account"
_EXTRA: Final = "extra"
_NO_LIMITS: Final = (True, "default")
"""Addresses and a network that a host has even without a setting."""
_OWN_KINDS: Final = ("target", "option", "field", "machine type", "topology", "zone")
"""The kinds of facts that only one service has, or that are compared in another form."""
_WORKED_OUT: Final = ("figure", "argument", "secret")
"""The kinds of facts that are compared as the program gets them."""


def job_difference(before: Iterable[Job], after: Iterable[Job]) -> Difference:
    """Return the difference between the jobs of two targets.

    Rendering compares each config with its job, so equal jobs start the same program with the same arguments,
    variables, secrets and mounts on as many hosts. Of the settings below `targets`, the account is part of it, and what
    limits or adds to the hosts: a closed network, tags, disks. Of `extra`, only its presence can be compared.
    """
    old, new = (
        {config_key(job): {**_job_data(job), **_host_data(job)} for job in jobs}
        for jobs in (before, after)
    )
    return config_difference(old, new)._replace(noun="job")


def revision_difference(before: CompiledRevision, after: CompiledRevision) -> Difference:
    """Return the difference between two revisions: of their configs, or of a job if it moves to another target."""
    old, new = before.jobs, after.jobs
    moved = [key for key in old.keys() & new.keys() if old[key].target != new[key].target]
    old_jobs, new_jobs = (
        {
            key: {"target": jobs[key].target, **_job_data(jobs[key]), **_own_options(jobs[key])}
            for key in moved
        }
        for jobs in (old, new)
    )
    return config_difference({**before.configs, **old_jobs}, {**after.configs, **new_jobs})


def own_settings(jobs: Iterable[Job]) -> list[str]:
    """Return the keys of the settings of the jobs' targets that are not compared: another target does not read them."""
    return sorted(
        {
            dotted(("targets", job.target, key))
            for job in jobs
            for key in job.options
            if key == _EXTRA or key not in (_ACCOUNT, *TARGET_FACTS[job.target].host_settings)
        }
    )


def _own_options(job: Job) -> dict[str, Any]:
    return {"targets": {job.target: dict(job.options)}} if job.options else {}


def _host_data(job: Job) -> dict[str, Any]:
    """Return the settings of the hosts that limit or add something, so that defaults of two targets are equal."""
    settings = TARGET_FACTS[job.target].host_settings
    data: dict[str, Any] = {}
    for fact in job_facts(job):
        kind, *name = fact.name
        if kind == "field" and _EXTRA in settings:
            data[_EXTRA] = "fields of the service"
        elif (
            kind == "option"
            and name[0] in settings
            and name != [_ACCOUNT]
            and fact.value not in _NO_LIMITS
        ):
            data[dotted(name)] = fact.value
    return data


def _job_data(job: Job) -> dict[str, Any]:
    """Return the facts of a job that every target has, as plain data; some as the program gets them."""
    # On gke, the setting is the Kubernetes account, which acts as the one of the stack.
    own_account = None if TARGET_FACTS[job.target].runs_pods else job.options.get(_ACCOUNT)
    data: dict[str, Any] = {
        "project": job.environment.project,
        "zone": job.zone,
        "account": own_account or job.account,
        "job_dir": job.job_dir,
        "hosts": job.slice.hosts,
        "args": [*job.args],
        "secrets": {secret.variable: _reference(secret, "") for secret in job.secrets},
    }
    for fact in job_facts(job):
        kind, *name = fact.name
        if kind not in (*_OWN_KINDS, *_WORKED_OUT):
            data[dotted([kind, *name])] = fact.value
    return {key: value for key, value in data.items() if value not in (None, [], {})}
