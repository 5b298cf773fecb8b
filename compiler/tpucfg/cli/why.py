"""`tpucfg why`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tpucfg.catalog import Catalog
from tpucfg.cli.exit_codes import USAGE, CommandExit
from tpucfg.cli.load_spec import load_checked, load_compiled, project_of
from tpucfg.cli.options import SPEC, EnvOption, RunOption, SizeOption, SpecOption, TargetOption, selection
from tpucfg.plan import Job
from tpucfg.plan.provenance import Reason, arg_reasons, figure_reasons
from tpucfg.plan.rung import flag_name, program_args, rung_figures
from tpucfg.spec.project import Project
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.interface import origin_of, spec_path
from tpucfg.templating import counted
from tpucfg.text_format import dotted, format_value, listed, nearest, printable
from tpucfg.yamldoc.document import KeyPath as Steps

CONTEXT: Final = {"ignore_unknown_options": True}
"""So that `tpucfg why --batch_size` asks for the program's flag."""


def _complete_path(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a first job of those selected can be asked for, as far as the spec can be read: a completion never fails."""
    chosen = (ctx.params.get(name) for name in ("env", "size", "target", "run"))
    try:
        compiled, _, _ = load_checked(Path(ctx.params.get("spec") or SPEC), Catalog(), selection(*chosen))
    except CommandExit:
        return []
    job, message = next(iter(compiled.request_bodies if compiled else ()), (None, {}))
    known = [key for key, _ in rung_figures(job.rung)] if job else []
    known += [dotted_whole(path) for path in leaves(message)] if job else []
    return [name for name in known if name.startswith(incomplete)]


def why(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A figure, a flag, or a path of the config.",
            show_default=False,
            autocompletion=_complete_path,
        ),
    ],
    spec: SpecOption = SPEC,
    env: EnvOption = None,
    size: SizeOption = None,
    target: TargetOption = None,
    run: RunOption = None,
) -> None:
    """Say where a value of one job's config comes from: the spec's line, the catalogue's row, the rule.

    Example: tpucfg why learning_rate --env prod --size v3-32
    """
    catalog = Catalog()
    compiled = load_compiled(spec, catalog, selection(env, size, target, run), quiet=True)
    if len(compiled.request_bodies) != 1:
        jobs = [f"--env {job.environment.name} --size {job.size}" for job, _ in compiled.request_bodies]
        raise CommandExit(
            USAGE, f"{len(jobs)} jobs are selected, and a value belongs to one", f"choose one: {listed(jobs, 4)}"
        )
    ((job, message),) = compiled.request_bodies
    reasons = tuple(_reasons(project_of(compiled), catalog, job, message, path))
    print(f"{job.name} on {job.target}")
    for reason in reasons:
        location = f"{reason.location}: " if reason.location else "  "
        address = catalog.sources[reason.source].url if reason.source in catalog.sources else reason.source
        print(printable(f"{location}{reason.text}") + (f"  ({address})" if address else ""))


def _reasons(project: Project, catalog: Catalog, job: Job, message: RequestBody, asked: str) -> Iterator[Reason]:
    """A flag may also be asked for by its place among the args."""
    name = asked.removeprefix("--").partition("=")[0]
    keys = {key: flag_name(project.training, key) for key, _ in rung_figures(job.rung)}
    figure = next((key for key, flag in keys.items() if name == key or (name == flag and asked.startswith("--"))), None)
    if figure:
        tuned_on = catalog.find(project.training.tuned_on) or job.slice
        yield from figure_reasons(project, tuned_on, job.rung, figure)
        return
    own = tuple(arg_reasons(project, job.size, name))
    if own:
        yield from own
        yield from (
            Reason(f"with its placeholders filled in: {arg}") for arg in job.args if arg.startswith(f"--{name}=")
        )
        return
    flags = (arg.key for arg in program_args(project, job.size))
    path = _path(message, asked, tuple(dict.fromkeys((*keys, *flags))))
    value = _at(message, path)
    if isinstance(value, str) and value.startswith("--") and value in job.args:
        yield from _reasons(project, catalog, job, message, value)
    elif isinstance(value, dict | list) and value:
        yield from _below(project, catalog, job, message, path)
    else:
        yield from _field_reasons(project, job, path, value)


def _below(project: Project, catalog: Catalog, job: Job, message: RequestBody, path: Steps) -> Iterator[Reason]:
    """Where each value of a mapping or a list comes from, in one line; asking for one of them tells the rest."""
    paths = list(leaves(_at(message, path), path))
    yield Reason(f"{dotted(path)} holds {counted(len(paths), 'value')}; ask for one of them to see the whole way")
    for leaf in paths:
        first, *others = _reasons(project, catalog, job, message, dotted_whole(leaf))
        said = first if first.location else next(iter(others), first)
        yield Reason(f"{dotted(leaf)}: {said.text.strip()}", said.location, said.source)


def _field_reasons(project: Project, job: Job, path: Steps, value: Any) -> Iterator[Reason]:
    yield Reason(f"{dotted(path)} is {printable(json.dumps(value, ensure_ascii=False))}")
    extra: Steps = ("targets", job.target, "extra", *path)
    if project.document.node(extra):
        yield Reason(f"{dotted(extra)} sets it", project.document.key_location(extra))
        return
    origin = origin_of(target_named(job.target).ORIGINS, path)
    if origin is None:
        return
    source = spec_path(origin, job)
    if origin.kind == "spec" and project.document.node(source):
        yield Reason(dotted(source), project.document.key_location(source))
    elif origin.kind == "spec":
        yield Reason(f"the default of {dotted(source)}, which the spec leaves out", source=origin.source)
    elif origin.kind == "catalog":
        location = project.document.value_location((*job.environment.sizes_path, job.environment.sizes.index(job.size)))
        yield Reason(f"the rung {job.size}", location)
        yield Reason(f"the {origin.detail} of {job.size} in the catalog", source=job.slice.sources[0])
        yield Reason("written in the form the service asks for", source=origin.source)
    else:
        yield Reason(origin.detail, source=origin.source)


def leaves(value: Any, path: Steps = ()) -> Iterator[Steps]:
    """The paths of the single values, in their order."""
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*path, key))
    else:
        yield path


def dotted_whole(path: Steps) -> str:
    """The path as it may be asked for, however long it is."""
    return ".".join(str(step) for step in path)


def _path(message: RequestBody, asked: str, others: Sequence[str]) -> Steps:
    """The path as keys and indices: `a.0.b` and `a[0].b` are the same. A key may have dots itself, as labels do.

    `others` is what could have been asked for beside the config's own keys.
    """
    steps: list[str | int] = []
    rest = asked.replace("[", ".").replace("]", "")
    while rest or not steps:
        value = _at(message, tuple(steps))
        known = _steps(value)
        step = max((key for key in known if f"{rest}.".startswith(f"{key}.")), key=len, default=None)
        if step is None:
            missing = rest.partition(".")[0]
            known = known if steps else [*others, *known]
            near = nearest(missing, known)
            hint = f"did you mean {near}?" if near else f"it has: {listed(known, 12)}"
            where = dotted(tuple(steps)) if steps else "the config"
            raise CommandExit(USAGE, f"{where} has no {format_value(missing)}", hint)
        steps.append(int(step) if isinstance(value, list) else step)
        rest = rest[len(step) + 1 :]
    return tuple(steps)


def _steps(value: Any) -> list[str]:
    if isinstance(value, dict):
        return list(value)
    return [str(index) for index in range(len(value))] if isinstance(value, list) else []


def _at(message: Any, path: Steps) -> Any:
    for step in path:
        message = message[step]
    return message
