"""The command `tpucfg why`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.cli import options
from tpucfg.cli.load_spec import load_compiled
from tpucfg.cli.options import SPEC, argument, selection
from tpucfg.paths import KeyPath, first_match, item_names, leaf_paths, path_with_indices, value_at
from tpucfg.plan import XLA_FLAGS_VARIABLE, Job, flag_name, provenance
from tpucfg.plan.job import written_flag
from tpucfg.plan.provenance import DERIVED, Reason
from tpucfg.plan.rung import figure_flags, figure_texts
from tpucfg.refusal import UsageError
from tpucfg.schemas import load_schema, resolve_references
from tpucfg.schemas.spec_keys import nearest_figure
from tpucfg.spec import LAYERED, Project, layers_of
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.extra import extra_source
from tpucfg.targets.interface import spec_path
from tpucfg.targets.objects import combined, companions_of
from tpucfg.text_format import dotted, format_count, format_value, listed, printable

CONTEXT: Final = {"ignore_unknown_options": True}
"""Settings of the command that let `tpucfg why --batch_size` name a flag of the program."""


class _Subject(NamedTuple):
    """The job whose values are explained."""

    project: Project
    catalog: Catalog
    job: Job
    request_body: RequestBody
    """The request body with its companions."""


def why(
    path: Annotated[str, argument("PATH", "A figure, a flag, a path such as metadata.name.")],
    spec: options.SpecOption = SPEC,
    env: options.EnvOption = None,
    size: options.SizeOption = None,
    target: options.TargetOption = None,
    run: options.RunOption = None,
    step: options.StepOption = None,
    changes: options.SetOption = None,
    probe: options.ProbeOption = False,
) -> None:
    """Explain where a value of one job's config comes from: the line of the spec, the catalog's entry, the rule.

    Example: tpucfg why learning_rate --env prod --size v3-32
    """
    catalog = Catalog()
    project, compiled = load_compiled(
        spec, catalog, selection(env, size, target, run, probe=probe, step=step, changes=changes)
    )
    if len(compiled.request_bodies) != 1:
        jobs = [f"--env {job.environment.name} --size {job.size}" for job in compiled.jobs]
        message = f"{len(jobs)} jobs are selected, but a value is explained for a single job"
        raise UsageError(message, f"choose one: {listed(jobs, 4)}")
    ((job, request_body),) = compiled.request_bodies
    # Computed before anything is printed, as an unknown path is an error.
    subject = _Subject(project, catalog, job, combined(request_body, companions_of(job)))
    reasons = tuple(_reasons(subject, path))
    print(f"{job.name} on {job.target}")
    for reason in reasons:
        location = f"{reason.location}: " if reason.location else "  "
        source = (
            catalog.sources[reason.source].url
            if reason.source in catalog.sources
            else reason.source
        )
        print(printable(f"{location}{reason.text}") + (f"  ({source})" if source else ""))


def _reasons(subject: _Subject, query: str) -> Iterator[Reason]:
    """Yield the origins of a figure, a flag or a path; a flag may also be named by its path among the args."""
    project, catalog, job, request_body = subject
    # A figure may be named as in the spec: training.train_steps, or steps.warmup_steps as its placeholder is.
    name = (
        query.removeprefix("--").removeprefix("training.").removeprefix("steps.").partition("=")[0]
    )
    flags = {key: flag_name(project.training, key) for key in figure_texts(job.rung)}
    # A name without dashes may be a path, unless the program's own flags have none, or the config has no such key.
    is_flag = (
        query.startswith("--")
        or job.settings.trainer.arg_style == "key=value"
        or name not in request_body
    )
    figure = next(
        (key for key, flag in flags.items() if name == key or (name == flag and is_flag)),
        name.replace("-", "_"),
    )
    tuned_on = catalog.find(project.training.tuned_on) or job.slice
    if figure in DERIVED:
        yield from provenance.derived_reasons(project, tuned_on, job.rung, figure)
    elif figure == "train_steps" and job.whole:
        yield from provenance.probe_reasons(project, job)
    elif figure == "train_steps" and job.rung.seen and job.rung.train_steps:
        yield from provenance.continued_reasons(project, job.rung)
    elif figure in flags:
        yield from provenance.figure_reasons(project, tuned_on, job.rung, figure)
    elif setting := _setting(project, job, query):
        yield from provenance.setting_reasons(project, job, setting)
    elif name in (arg.key for arg in job.settings.trainer.args):
        yield from _argument_reasons(project, job, name)
    elif variable := _variable_setting(job, query):
        yield from provenance.setting_reasons(project, job, variable)
    else:
        yield from _path_reasons(subject, query)


def _argument_reasons(project: Project, job: Job, name: str) -> Iterator[Reason]:
    """Yield the origin of an argument that is no figure, with its placeholders filled in."""
    if job.settings.layers.find("trainer", "args", name):
        yield from provenance.setting_reasons(project, job, ("trainer", "args", name))
    else:
        yield from provenance.preset_reasons(project, name)
    style = job.settings.trainer.arg_style
    words = [
        " ".join(written_flag(style, flag, text))
        for flag, text in job.flags
        if flag == name and text
    ]
    yield from (Reason(f"with its placeholders filled in: {text}") for text in words)


def _variable_setting(job: Job, name: str) -> KeyPath:
    """Return the path of the setting that a variable of the program comes from; an empty one if it is none."""
    trainer, generation = job.settings.trainer, job.slice.generation
    if (
        name == XLA_FLAGS_VARIABLE
        and name not in dict(trainer.env)
        and trainer.xla_flags.get(generation)
    ):
        return ("trainer", "xla_flags", generation)
    names = {"env": dict(trainer.env), "secrets": {secret.variable for secret in trainer.secrets}}
    return next((("trainer", key, name) for key, known in names.items() if name in known), ())


def _path_reasons(subject: _Subject, query: str) -> Iterator[Reason]:
    """Yield the origins of the value at a path of the config."""
    project, _, job, request_body = subject
    figures = (
        figure for figure, _, _ in figure_flags(project.training, job.rung, figure_texts(job.rung))
    )
    own_flags = (arg.key for arg in job.settings.trainer.args if arg.key)
    path = _parse_path(request_body, query, tuple(dict.fromkeys((*figures, *own_flags))))
    value = value_at(request_body, path)
    flag, word = _argument_at(job, path)
    if word:
        yield Reason(f"{dotted(path)} is {printable(json.dumps(value, ensure_ascii=False))}")
        yield Reason(dotted(word), project.document.value_location(word))
    elif flag:
        yield from _reasons(subject, f"--{flag}")
    elif isinstance(value, dict | list) and value:
        yield from _reasons_below(subject, path)
    else:
        yield from _field_reasons(subject, path, value)


def _argument_at(job: Job, path: KeyPath) -> tuple[str, KeyPath]:
    """Return the flag that the word at a path of the request body belongs to, or the path of the word in the spec."""
    match path:
        case (*_, "args", int(index)):
            trainer = job.settings.trainer
            own = [("", arg.path) for arg in trainer.args if not arg.key]
            words = own or [
                (flag, ())
                for flag, text in job.flags
                for _ in written_flag(trainer.arg_style, flag, text)
            ]
            return words[index] if index < len(words) else ("", ())
    return "", ()


def _setting(project: Project, job: Job, query: str) -> KeyPath:
    """Return the path of a layered setting such as `trainer.env.A`; an empty one if the query is none.

    Raises:
        RefusalError: There is no such setting.
    """
    if query.partition(".")[0] not in LAYERED:
        return ()
    schema: Any = load_schema("tpucfg")
    known: Any = schema
    steps: KeyPath = ()
    rest = query
    layers = [
        *layers_of(project.document.data, job.environment.name, job.size, is_probe=bool(job.whole))
    ]
    while rest:
        known_keys = resolve_references(schema, known).get("properties", {})
        names = list(
            dict.fromkeys([*(key for layer in layers for key in layer.children()), *known_keys])
        )
        step = _first_step(rest, names)
        if step is None:
            raise _unknown_key(dotted(steps, "the spec"), rest, names)
        known = known_keys.get(step, {})
        layers = [child for layer in layers if (child := layer.find(step)) is not None]
        steps, rest = (*steps, step), rest[len(step) + 1 :]
    return steps


def _reasons_below(subject: _Subject, path: KeyPath) -> Iterator[Reason]:
    """Yield one line for each value of a mapping or a list, with its most specific origin."""
    paths = list(leaf_paths(value_at(subject.request_body, path), path))
    yield Reason(
        f"{dotted(path)} contains {format_count(len(paths), 'value')}; give the path of one for all details"
    )
    for leaf in paths:
        first, *others = _reasons(subject, _full_path(leaf))
        reason = first if first.location else next(iter(others), first)
        yield Reason(f"{dotted(leaf)}: {reason.text.strip()}", reason.location, reason.source)


def _field_reasons(subject: _Subject, path: KeyPath, value: Any) -> Iterator[Reason]:
    """Yield the value of a field, and its origin: `extra`, a setting of the spec, its default, or the catalog."""
    project, job = subject.project, subject.job
    yield Reason(f"{dotted(path)} is {printable(json.dumps(value, ensure_ascii=False))}")
    extra = extra_source(job, path)
    if extra and project.document.node(extra):
        yield Reason(f"{dotted(extra)} sets it", project.document.key_location(extra))
        return
    if XLA_FLAGS_VARIABLE in _parent_names(subject.request_body, path):
        yield from provenance.layer_reasons(
            project, job, _variable_setting(job, XLA_FLAGS_VARIABLE)
        )
        return
    origin = first_match(target_named(job.target).ORIGINS.items(), path)
    if origin is None:
        return
    setting = spec_path(origin.detail, job)
    if origin.kind == "spec" and project.document.node(setting):
        layered = tuple(origin.detail.split("."))
        if layered[0] in LAYERED:
            yield from provenance.layer_reasons(project, job, _entry_of(subject, path, layered))
        else:
            yield Reason(dotted(setting), project.document.key_location(setting))
    elif origin.kind == "spec":
        yield Reason(
            f"the default of {dotted(setting)}, which the spec does not set", source=origin.source
        )
    elif origin.kind == "catalog" and project.document.node(
        override := ("overrides", job.size, origin.detail)
    ):
        yield Reason(dotted(override), project.document.key_location(override))
    elif origin.kind == "catalog":
        location = project.document.value_location(
            (*job.environment.sizes_path, job.environment.sizes.index(job.size))
        )
        yield Reason(f"the rung {job.size}", location)
        yield Reason(
            f"the {origin.detail} of {job.size} in the catalog", source=job.slice.sources[0]
        )
        yield Reason("in the form that the service requires", source=origin.source)
    else:
        yield Reason(origin.detail, source=origin.source)


def _entry_of(subject: _Subject, path: KeyPath, setting: KeyPath) -> KeyPath:
    """Return the path of the entry of a setting that a field is made of; the setting's own path if it has none.

    The field's key, or the name beside it, identifies the entry: a request body has the variables of trainer.env as a
    list of names and values.
    """
    layered = subject.job.settings.layers.find(*map(str, setting))
    entries = layered.value if layered and isinstance(layered.value, dict) else {}
    names = (*path, *_parent_names(subject.request_body, path))
    known = [name for name in names if isinstance(name, str) and name in entries]
    return (*setting, known[-1]) if known and setting[0] != "capacity" else setting


def _parent_names(request_body: RequestBody, path: KeyPath) -> list[Any]:
    """Return the value of `name` of each mapping around a field, such as that of an item of a list."""
    parents = [value_at(request_body, path[:depth]) for depth in range(len(path))]
    return [parent.get("name") for parent in parents if isinstance(parent, dict)]


# Paths of a request body.


def _full_path(path: KeyPath) -> str:
    """Return a path as on the command line, without the length limit of messages."""
    return ".".join(str(step) for step in path)


def _parse_path(request_body: RequestBody, query: str, other_names: Sequence[str]) -> KeyPath:
    """Parse a path: `a.0.b` and `a[0].b` are equal, as is `a.name.b` for an item of that name; a key may have dots.

    Args:
        request_body: The request body that the path is looked up in.
        query: The path on the command line.
        other_names: The figures and flags that the command line could name as well, for suggestions.

    Raises:
        UsageError: There is no such path.
    """
    steps: list[str | int] = []
    rest = query.replace("[", ".").replace("]", "")
    while rest or not steps:
        value = value_at(request_body, tuple(steps))
        known = _child_names(value)
        step = _first_step(rest, known)
        if step is None and not steps and (deeper := _paths_ending_in(request_body, rest)):
            message = f"{format_value(rest.partition('.')[0])} is not at the top of the config"
            raise UsageError(message, f"did you mean {listed(deeper, 3, last=' or ')}?")
        if step is None:
            raise _unknown_key(
                dotted(steps, "the config"), rest, known if steps else [*other_names, *known]
            )
        is_index = isinstance(value, list) and step.isascii() and step.isdecimal()
        # An item of a list may be named by its key, as in a comparison.
        steps = [*path_with_indices(request_body, (*steps, int(step) if is_index else step))]
        rest = rest[len(step) + 1 :]
    return tuple(steps)


def _first_step(query: str, keys: Iterable[str]) -> str | None:
    """Return the key that a dotted path starts with: the longest one, because keys may contain dots."""
    return max((key for key in keys if f"{query}.".startswith(f"{key}.")), key=len, default=None)


def _unknown_key(parent: str, query: str, known: Sequence[str]) -> UsageError:
    """Return the error for a path whose first step is no key of its parent."""
    unknown = query.partition(".")[0]
    near = nearest_figure(unknown, known)
    hint = f"did you mean {near}?" if near else f"it has: {listed(known, 12) or 'no keys'}"
    return UsageError(f"{parent} has no {format_value(unknown)}", hint)


def _paths_ending_in(request_body: RequestBody, query: str) -> Sequence[str]:
    """Return the paths that end in a query: `render` prints the objects of some targets without the first key."""
    leaves = [_full_path(path) for path in leaf_paths(request_body)]
    ends = (f"{leaf}.".partition(f".{query}.") for leaf in leaves if f".{query}." in f".{leaf}.")
    return tuple(dict.fromkeys(f"{parents}.{query}" for parents, _, _ in ends))


def _child_names(value: Any) -> list[str]:
    """Return the keys of a mapping; the names of a list's items, followed by their indices."""
    if isinstance(value, dict):
        return list(value)
    return [*item_names(value), *map(str, range(len(value)))] if isinstance(value, list) else []
