"""Rules that the program gets each figure once, as the number that the plan computed.

A number written beside the plan makes the ladder, the costs and a review wrong: with `per_device_batch_size=4` among
the arguments, a rung of twice the devices runs twice the batch that is shown.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tpucfg.catalog import Catalog
from tpucfg.findings import Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.rung import (
    BATCH_FIGURES,
    Rung,
    flag_name,
    has_finite_decimal,
    number_path,
    setting_path,
)
from tpucfg.spec import Project, Settings, Training
from tpucfg.spec.placeholders import used_placeholders
from tpucfg.spec.presets import FIGURES, NAMED_FIGURES
from tpucfg.spec.sections import compares
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc import KeyPath

_NUMBER: Final = r"[-+]?(?:[0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_WORD: Final = rf"(?:--)?\b([A-Za-z_][A-Za-z0-9_.-]*)[= ]({_NUMBER})(?=[\s\"';]|$)"
"""A flag and its number in a text."""


@compares("trainer", "training", "overrides")
def figure_findings(project: Project, _: Catalog) -> Iterator[Finding]:
    """Yield the findings about figures that the program gets as a literal, or not at all."""
    names, flags = _figure_names(project.training), _flags_of_figures(project)
    yield from _flags_of_two_figures(project, flags)
    yield from _flags_of_argument_and_figure(project, flags)
    literals: dict[tuple[KeyPath, str], _Literal] = {}
    shells: dict[Location, Finding] = {}
    for settings in project.distinct_settings():
        yield from _bare_flags(project, settings)
        shells |= {finding.location: finding for finding in _dropped_by_shell(project, settings)}
        literals |= {
            (literal.path, literal.name): literal
            for literal in _literals(project, settings, names, flags)
        }
    yield from (_literal_finding(project, literal) for literal in literals.values())
    yield from shells.values()
    yield from _shared_folders(project)
    yield from _uncarried(project, frozenset(literal.figure for literal in literals.values()))


def batch_per_device_findings(project: Project, rungs: Sequence[Rung]) -> Iterator[Finding]:
    """Yield an error if the program gets the batch of a device and some rung's has no finite decimal form."""
    if not _is_carried(project, "per_device_batch_size"):
        return
    endless = [rung for rung in rungs if not has_finite_decimal(rung.per_device)]
    if endless:
        sizes = listed([f"{rung.size}: {rung.per_device}" for rung in endless])
        message = f"the batch of a device has no finite decimal form, in which the program gets it: {sizes}"
        devices = endless[0].slice.devices * (endless[0].grad_accum or 1)
        hint = f"set overrides.{endless[0].size}.batch_size to {devices}, or leave {endless[0].size} out"
        path = setting_path(project.training, "batch_size")
        yield project.document.finding("TPU040", message, path, help=hint)


def _flags_of_figures(project: Project) -> dict[str, str]:
    """Return the flag of each figure that some rung has."""
    training = project.training
    counts = (
        "model_parallel",
        "sequence_length",
        "grad_accum",
        "train_steps",
        "epochs",
        "learning_rate",
    )
    figures = (*BATCH_FIGURES, *counts, *training.steps)
    return {
        figure: flag
        for figure in figures
        if _has_figure(project, figure) and (flag := flag_name(training, figure))
    }


def _has_figure(project: Project, figure: str) -> bool:
    """Return True if the figure has a value on some rung."""
    training = project.training
    if figure in (*BATCH_FIGURES, "model_parallel", *training.steps):
        return True
    if figure == "grad_accum":
        # Without a setting, a batch that stays is accumulated on a smaller slice.
        overridden = any(override.grad_accum for override in project.overrides.values())
        return bool(training.grad_accum) or overridden or training.batch_rule == "keep"
    if figure in ("train_steps", "epochs"):
        return figure == _length(project)
    return getattr(training, figure) is not None


def _length(project: Project) -> str:
    """Return the figure that the length of a job is counted in; that of a probe is always steps."""
    return "epochs" if project.training.epochs and not project.is_probe else "train_steps"


# Flags that the program would get twice.


def _flags_of_two_figures(project: Project, flags: Mapping[str, str]) -> Iterator[Finding]:
    """Yield an error for each flag that two figures of `training` have."""
    training = project.training
    for flag, count in Counter(flags.values()).items():
        if count > 1:
            figures = [figure for figure, name in flags.items() if name == flag]
            message = f"{_dashes(project)}{flag} would be given {count} times: for {' and for '.join(figures)}"
            renamed = next(
                (figure for figure in reversed(figures) if figure in training.flags), figures[-1]
            )
            path: KeyPath = ("training", "flags", renamed)
            place = path if renamed in training.flags else setting_path(training, renamed)
            hint = f"set {dotted(path)} to null, which omits the figure, or to another flag"
            yield project.document.finding("TPU050", message, place, help=hint)


def _dashes(project: Project) -> str:
    """Return the dashes before a flag in the style of the program's arguments."""
    return "" if project.base.trainer.arg_style == "key=value" else "--"


def _flags_of_argument_and_figure(project: Project, flags: Mapping[str, str]) -> Iterator[Finding]:
    """Yield an error for each argument whose flag a figure has."""
    figure_of_flag = {flag: figure for figure, flag in flags.items()}
    args = {
        arg.path: arg for settings in project.distinct_settings() for arg in settings.trainer.args
    }
    for path, arg in args.items():
        if figure := figure_of_flag.get(arg.key):
            setting = setting_path(project.training, figure)
            message = f"{_dashes(project)}{arg.key} would be given twice: by {dotted(path)} and by {dotted(setting)}"
            hint = f"delete {dotted(path)}, or set training.flags.{figure} to null, which omits the figure"
            related = ((project.document.key_location(setting), "the figure with the same flag"),)
            yield project.document.finding(
                "TPU050", message, path, at_key=True, help=hint, related=related
            )


# Numbers beside the plan.


class _Literal(NamedTuple):
    """A number in the spec's own arguments or variables whose name means a figure."""

    path: KeyPath
    name: str
    text: str
    figure: str
    is_word: bool = False
    """True if it is a part of a text, which may mean something else."""


def _figure_names(training: Training) -> dict[str, str]:
    """Return the figure that each name means: its own name, its flag, and the names in the preset's row."""
    figures = (*FIGURES, *NAMED_FIGURES, *training.steps)
    names = {figure: figure for figure in figures}
    names |= {flag: figure for figure in figures if (flag := flag_name(training, figure))}
    names |= training.preset.meanings if training.preset else {}
    return {_normal(name): figure for name, figure in names.items()}


def _normal(name: str) -> str:
    return name.replace("-", "_")


def _literals(
    project: Project, settings: Settings, names: Mapping[str, str], flags: Mapping[str, str]
) -> Iterator[_Literal]:
    """Yield the numbers in a program's arguments, variables and command; `flags` are those of the figures."""
    trainer, training = settings.trainer, project.training
    for arg in trainer.args:
        figure = names.get(_normal(arg.key), "")
        # A flag that the figure itself has is given twice (TPU050).
        for text in arg.values if figure and flags.get(figure) != arg.key else ():
            if text and re.fullmatch(_NUMBER, text):
                yield _Literal(arg.path, arg.key, text, figure)
    prefix = training.preset.variable_prefix.lower() if training.preset else ""
    for key, value in trainer.env:
        name = _normal(key.lower())
        figure = names.get(name) or names.get(name.removeprefix(prefix), "")
        if figure and re.fullmatch(_NUMBER, value):
            yield _Literal(settings.source(("trainer", "env", key)), key, value, figure)
    words = [
        (settings.source(("trainer", "command", index)), word)
        for index, word in enumerate(trainer.command)
    ]
    words += [
        (arg.path, text) for arg in trainer.args if not arg.key for text in arg.values if text
    ]
    for path, word in words:
        for match in re.finditer(_WORD, word):
            if figure := names.get(_normal(match[1]), ""):
                yield _Literal(path, match[1], match[2], figure, is_word=True)


def _literal_finding(project: Project, literal: _Literal) -> Finding:
    figure, value, name = (
        literal.figure,
        format_value(literal.text, quoted=False),
        dotted(literal.path),
    )
    placeholder = f"${{{_shown(project, figure)}}}"
    consequence = "which the plan works out for each rung"
    hint = (
        f"write {placeholder} in place of {value}"
        if literal.is_word
        else f"set {name} to {placeholder}"
    )
    if not _has_figure(project, figure):
        setting = dotted(setting_path(project.training, figure))
        consequence = f"which the plan does not know, because {setting} is not set"
        hint = f"set {setting} to {value}"
        if not literal.is_word and literal.name == flag_name(project.training, figure):
            hint = f"delete {literal.name}, and {hint}"  # the figure has this flag itself
        elif not literal.is_word:
            hint = f"{hint}, and {name} to {placeholder}"
    message = f"{name} sets {literal.name} to {value}, a literal for {figure}, {consequence}"
    return project.document.finding(
        "TPU033" if literal.is_word else "TPU032", message, literal.path, help=hint
    )


def _shown(project: Project, figure: str) -> str:
    """Return the name of a figure's placeholder."""
    return f"steps.{figure}" if figure in project.training.steps else figure


def _bare_flags(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield an error for each flag without a value in a style that has none."""
    for arg in settings.trainer.args if settings.trainer.arg_style == "key=value" else ():
        if None in arg.values and arg.key:
            message = f"{dotted(arg.path)} is a bare flag, and the style key=value has none"
            hint = f"set {dotted(arg.path)} to true, or to the value that the program takes"
            yield project.document.finding("TPU007", message, arg.path, help=hint)


# Figures that do not reach the program.


_SHELLS: Final = ("sh", "bash", "zsh", "dash", "ash")
_ARGUMENTS: Final = r"\$(?:[@*0-9]|\{[@*0-9])"
"""The arguments of a script, in a text of a shell."""


def _dropped_by_shell(project: Project, settings: Settings) -> Iterator[Finding]:
    """Yield a warning for a shell's script that has neither its arguments, which are args and figures, nor a figure."""
    program, *words = settings.trainer.command or ("",)
    scripts = [word for option, word in pairwise(words) if re.fullmatch(r"-[a-z]*c", option)]
    if (
        program.rpartition("/")[2] not in _SHELLS
        or not scripts
        or re.search(_ARGUMENTS, scripts[0])
    ):
        return
    if used_placeholders(scripts).isdisjoint((*FIGURES, *NAMED_FIGURES)):
        path = settings.source(("trainer", "command"))
        message = f'{dotted(path)} runs a script without "$@", so no argument and no figure reaches the program'
        hint = (
            'write "$@" where the program takes its arguments, and -- as the word after the script'
        )
        hint += "; or write its figures as placeholders, such as ${batch_size}"
        yield project.document.finding("TPU034", message, path, help=hint)


_OF_RUN: Final = frozenset(("run", "run_dir", "job_dir", "run_folder"))
"""The placeholders that are others for each run or size."""


def _shared_folders(project: Project) -> Iterator[Finding]:
    """Yield a warning for an argument that gives all runs one folder, in place of the preset's, which has the run."""
    args = project.training.preset.args if project.training.preset else {}
    own = {key for key, text in args.items() if not _OF_RUN.isdisjoint(used_placeholders([text]))}
    for settings in project.distinct_settings():
        folders = [arg for arg in settings.trainer.args if arg.key in args]
        texts = [text for arg in folders for text in arg.values if text]
        fixed = [
            arg.path
            for arg in folders
            if arg.key in own and settings.layers.find("trainer", "args", arg.key)
        ]
        if fixed and _OF_RUN.isdisjoint(used_placeholders(texts)):
            name = dotted(fixed[0])
            message = f"{name} is the same for all runs and sizes, so each goes on with the checkpoints of another"
            yield project.document.finding(
                "TPU128", message, fixed[0], help=f"delete {name}, or write ${{run}} into it"
            )


def _uncarried(project: Project, reported: frozenset[str]) -> Iterator[Finding]:
    """Yield a warning for each figure that the program has to know and does not get, without the `reported` ones."""
    training = project.training
    for figure in _needed(project):
        alternatives = BATCH_FIGURES if figure in BATCH_FIGURES else (figure,)
        if not reported.isdisjoint(alternatives) or any(
            _is_carried(project, name) for name in alternatives
        ):
            continue
        path, shown = number_path(project, figure), _shown(project, figure)
        message = f"no flag and no placeholder gives {figure} to the program, which runs with a number of its own"
        hint = f"set training.flags.{figure} to {figure}, or to the program's own flag"
        if figure in training.flags:
            hint = f"delete training.flags.{figure}, or write ${{{shown}}} in trainer.args"
        elif training.preset and (argument := training.preset.arguments.get(figure)):
            hint = f"set trainer.args.{argument} to ${{{shown}}}, or another argument that divides the model"
        yield project.document.finding("TPU034", message, path, help=hint)


def _needed(project: Project) -> Iterator[str]:
    """Yield the figures that the spec sets, by which a program has to run."""
    training = project.training
    yield training.batch_key
    if training.grad_accum:
        yield "grad_accum"
    if training.model_parallel > 1:
        yield "model_parallel"
    if training.train_tokens:
        yield "sequence_length"
    yield _length(project)
    if training.learning_rate:
        yield "learning_rate"
    yield from training.steps


def _is_carried(project: Project, figure: str) -> bool:
    """Return True if a flag or a placeholder gives the figure to the program of every job."""
    if flag_name(project.training, figure):
        return True
    name = _shown(project, figure)
    return all(
        name in used_placeholders(settings.trainer.texts)
        for settings in project.distinct_settings()
    )
