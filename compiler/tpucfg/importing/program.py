"""The program's command line as `command`, `args` and figures, so that each figure stands once.

A word `name=number` is a figure if the name is the figure's own, or the one by which the framework of the command knows
it. Words of a flag style become a mapping; a script, or a line of another form, stays text with placeholders.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import zip_longest
from math import prod
from typing import Any, Final, NamedTuple

from tpucfg.plan.rung import decimal_text
from tpucfg.spec.presets import FIGURES, NAMED_FIGURES, PRESETS, ArgStyle, Preset

BATCH_FIGURES: Final = ("batch_size", "per_device_batch_size")
_NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE]-?[0-9]{1,3})?"
_MODEL_AXES: Final = ("tensor", "tensor_transpose", "tensor_sequence", "context", "sequence", "pipeline")
"""The axes of MaxText's mesh whose devices share one copy of the batch:
https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/configs/base.yml."""
_ROOT: Final = re.compile(r"--|[A-Za-z_][\w.]*=")
_NAME: Final = r"([A-Za-z_][\w.-]*)"
_OPTIONS: Final[Mapping[ArgStyle, re.Pattern[str]]] = {
    "--key=value": re.compile(rf"--{_NAME}(?:=(.*))?", re.DOTALL),
    "key=value": re.compile(rf"{_NAME}=(.*)", re.DOTALL),
    "--key value": re.compile(rf"--{_NAME}\0(.*)", re.DOTALL),
}
"""An option of each style, in the order in which they are tried; a pair of words is joined by a zero byte."""


class Number(str):
    """A number of the spec in the spelling of the file."""

    __slots__ = ()


class Program(NamedTuple):
    """The start of the program, as keys of a spec."""

    trainer: dict[str, Any]
    """`command`, `arg_style` and `args`, those that are set."""
    figures: dict[str, Number]
    """The figures that the program is given, as keys of `training`."""
    names: Mapping[str, str]
    """The figures that are written as flags, with their names."""
    preset: str | None
    """The framework whose flags and arguments these are."""


def read_program(command: Sequence[str], args: Sequence[str], name: str, *, with_figures: bool = True) -> Program:
    """Return a command line as keys of a spec.

    Args:
        command: The words of the command; empty if the image's own starts the program.
        args: The further words.
        name: The job's name in the file.
        with_figures: False if the figures of the line stay in it.
    """
    words = [*command, *args]
    preset_name = next((preset for preset in PRESETS if any(preset in word.lower() for word in words)), None)
    preset = PRESETS[preset_name] if preset_name else None
    head, style, options = _split(words) if command or not args or _ROOT.match(args[0]) else (words, None, [])
    figures = _Figures(preset, with_figures=with_figures)
    if style is None:
        texts = {
            "command": [_with_own_run(figures.in_text(word), name) for word in command],
            "args": [_with_own_run(figures.in_text(word), name) for word in args],
        }
        return Program(_set(texts), figures.all(words), {}, None)
    rest, names = figures.in_options(options)
    arguments = _merged(rest)
    # A preset adds its own arguments, so it stands only for a line that has them all.
    given = dict(options)
    if preset and preset_name and preset.args.keys() <= given.keys() and style == preset.arg_style:
        if given.get("run_name") == name:
            del arguments["run_name"]
        style = "--key=value"  # the preset has the style too
    else:
        preset_name = None
    trainer = {"command": [_escaped(word) for word in head], "args": arguments}
    styled = {} if style == "--key=value" else {"arg_style": style}
    return Program(_set({**trainer, **styled}), figures.all(words), names, preset_name)


def flags_of(program: Program, figures: Iterable[str]) -> str | dict[str, Any] | None:
    """Return `training.flags` under which exactly the flags of the program are rendered.

    Args:
        program: The program.
        figures: The figures that the spec's `training` has; the batch of a device is worked out in any case.
    """
    preset = PRESETS[program.preset].flags if program.preset else {figure: figure for figure in FIGURES}
    flags = {
        figure: program.names.get(figure)
        for figure in dict.fromkeys((*FIGURES, *NAMED_FIGURES))
        if (figure in figures or figure in BATCH_FIGURES) and program.names.get(figure) != preset.get(figure)
    }
    if program.names.get("per_device_batch_size"):  # it takes the place of the whole batch
        flags.pop("batch_size", None)
    if program.preset:
        return {"preset": program.preset, **flags} if flags else program.preset
    return flags or None


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value}


def _escaped(text: str) -> str:
    """Return a text in which `${` is no placeholder."""
    return text.replace("${", "$${")


def _with_own_run(text: str, name: str) -> str:
    """Return a text in which the run has the name of its job: with one name, two rungs would share their folder."""
    return re.sub(rf"(?<![\w.-])run_name={re.escape(name)}(?![\w.-])", "run_name=${run}", text) if name else text


class _Figures:
    """The figures of one command line; the first value of each counts."""

    def __init__(self, preset: Preset | None, *, with_figures: bool) -> None:
        names = {figure: figure for figure in (*FIGURES, "per_device_batch_size", "sequence_length", "model_parallel")}
        names |= {figure: flag for figure, flag in (preset.flags.items() if preset else ()) if flag}
        if preset and preset.flags.get("batch_size") is None:
            names.pop("batch_size", None)
        self._by_name = {name: figure for figure, name in names.items()} if with_figures else {}
        self.numbers: dict[str, Number] = {}

    def in_options(
        self, options: Sequence[tuple[str, str | None]]
    ) -> tuple[list[tuple[str, str | None]], dict[str, str]]:
        """Return the options without those that are figures, and the flag of each figure."""
        names = [name for name, _ in options]
        flags: dict[str, str] = {}
        rest: list[tuple[str, str | None]] = []
        for name, value in options:
            figure = self._by_name.get(name)
            if figure and value is not None and names.count(name) == 1 and self._take(figure, value):
                flags[figure] = name
            else:
                rest.append((name, None if value is None else _escaped(value)))
        return rest, flags

    def in_text(self, text: str) -> str:
        """Return a text in which placeholders stand for the figures."""
        if not self._by_name:
            return _escaped(text)
        pattern = rf"(?<![\w.-])((?:--)?({'|'.join(map(re.escape, self._by_name))})[= ])({_NUMBER})(?![\w.])"

        def replacement(match: re.Match[str]) -> str:
            figure = self._by_name[match[2]]
            return f"{match[1]}${{{figure}}}" if self._take(figure, match[3]) else match[0]

        return re.sub(pattern, replacement, _escaped(text))

    def all(self, words: Sequence[str]) -> dict[str, Number]:
        """Return the figures with the model parallelism of the mesh, whose axes stay in the line."""
        axes = rf"(?<![\w.-])(?:ici|dcn)_(?:{'|'.join(_MODEL_AXES)})_parallelism=([0-9]{{1,6}})(?![\w.])"
        devices = prod(int(size) for word in words for size in re.findall(axes, word))
        share = Fraction(self.numbers.get("per_device_batch_size", "1"))
        if (share * devices).denominator > 1:  # the program shares an example among devices of another axis
            devices = share.denominator
        return ({"model_parallel": Number(devices)} if devices > 1 and self.numbers else {}) | self.numbers

    def _take(self, figure: str, text: str) -> bool:
        """Keep a figure if its number is written as the config will write it; False if it must stay in the line."""
        if not re.fullmatch(_NUMBER, text):
            return False
        if figure != "learning_rate":  # which keeps the spelling of the spec
            text = decimal_text(Fraction(text)) if "e" not in text.lower() else ""
        is_count = figure not in ("learning_rate", "per_device_batch_size", "epochs")
        if (
            text in ("", "0")
            or (is_count and not re.fullmatch("[0-9]+", text))
            or self.numbers.get(figure, text) != text
        ):
            return False
        self.numbers[figure] = Number(text)
        return True


def _split(words: Sequence[str]) -> tuple[list[str], ArgStyle | None, list[tuple[str, str | None]]]:
    """Return the words before the options, the options' style and the options; the style of a script is None."""
    start = next((index for index, word in enumerate(words) if _ROOT.match(word)), len(words))
    head, rest = [*words[:start]], words[start:]
    if any("\n" in word or word in ("-c", "-lc", "-ec") for word in head):
        return [*words], None, []
    for style, option in _OPTIONS.items():
        options = [option.fullmatch(text) for text in (_pairs(rest) if style == "--key value" else rest)]
        if all(options):
            return head, style, [(match[1], match[2]) for match in options if match]
    return [*words], None, []


def _pairs(words: Sequence[str]) -> list[str]:
    """Return pairs of a name and its value; a word without a value stays alone, so that it is no option."""
    values = ["" if value.startswith("-") else f"\0{value}" for value in words[1::2]]
    return list(map("".join, zip_longest(words[::2], values, fillvalue="")))


def _merged(options: Sequence[tuple[str, str | None]]) -> dict[str, Any]:
    """Return options as a mapping; one that is given several times has a list."""
    merged: dict[str, Any] = {}
    for name, value in options:
        values = [] if name not in merged else merged[name] if isinstance(merged[name], list) else [merged[name]]
        merged[name] = [*values, _plain(value)] if name in merged else _plain(value)
    return merged


def _plain(text: str | None) -> Any:
    """Return a number or a truth value that the config writes as it was, any other text as it is."""
    if text in ("true", "false"):
        return text == "true"
    if text and re.fullmatch(r"0|-?[1-9][0-9]{0,15}", text):
        return int(text)
    return text
