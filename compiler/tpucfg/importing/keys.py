"""The keys of a spec that write a request body: a target's table of origins, read backwards, and the program's line."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, zip_longest
from typing import Any, Final, NamedTuple

from tpucfg.importing.comparison import expand
from tpucfg.paths import KeyPath, first_match, grouped, leaf_paths, value_at, values_at
from tpucfg.plan.rung import decimal_text
from tpucfg.spec.presets import FIGURES, NAMED_FIGURES, PRESETS, ArgStyle, Preset
from tpucfg.targets import target_named
from tpucfg.targets.gke import nodes

Matches = Sequence[tuple[KeyPath, Any]]
"""The fields of a request body that one key writes, in the order of the body."""

_REPEATED: Final = ("replicatedJobs", "containers", "workerPoolSpecs", "nodeSpec")
"""Lists of which a job has one item, or several equal ones: the first item is read."""
_UNITS: Final = (("d", 86_400), ("h", 3600), ("m", 60))
_JOB: Final = "spec.replicatedJobs.*.template.spec"
CHILD: Final = ("spec", "replicatedJobs", 0, "template", "spec")
POD: Final = (*CHILD, "template", "spec")
"""The paths of the job of a JobSet, and of its pods."""


def fields_by_key(target: str, body: Mapping[str, Any]) -> dict[str, list[tuple[KeyPath, Any]]]:
    """Return the fields of a request body by the key that writes them; the program's own line is under `figure`."""
    origins = target_named(target).ORIGINS.items()
    paths = [path for path in leaf_paths(body) if _is_first(path)]
    rows = [(origin, path) for path in paths if (origin := first_match(origins, path))]
    return grouped(
        (origin.detail if origin.kind == "spec" else origin.kind, (path, value_at(body, path)))
        for origin, path in rows
        if origin.kind in ("spec", "figure")
    )


def settings(target: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each key that a request body shows, by the key's path with dots."""
    fields = fields_by_key(target, body)
    values = {
        key: _CONVERT.get(key, _one)(matches, body)
        for key, matches in fields.items()
        if key not in _LINE
    }
    absent = {key: value for key, value in _ABSENT.get(target, {}).items() if key not in fields}
    return absent | {key: value for key, value in values.items() if value not in (None, {}, [])}


def program_words(target: str, body: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the words of the program's command and of its arguments."""
    fields = fields_by_key(target, body)
    command, args = ([expand(str(value)) for _, value in fields.get(key, ())] for key in _LINE)
    return command, args


def _is_first(path: KeyPath) -> bool:
    # The second container of a pod shows that there are several.
    is_second = path[-3:] == ("containers", 1, "name")
    return is_second or all(step == 0 or parent not in _REPEATED for parent, step in pairwise(path))


# Conversions of one key's fields


def _one(matches: Matches, _: Any) -> Any:
    return matches[0][1]


def _texts(matches: Matches, _: Any) -> list[str]:
    return [str(value) for _, value in matches]


def _mapping(matches: Matches, _: Any) -> dict[str, Any]:
    return {str(path[-1]): value for path, value in matches}


def _labels(matches: Matches, _: Any) -> dict[str, Any]:
    """Return the labels of the job; those of its pods alone are `extra`, as no key writes them."""
    return _mapping([(path, value) for path, value in matches if "template" not in path], None)


def _capacity(matches: Matches, _: Any) -> Any:
    fields = _mapping(matches, None)
    if nodes.SPOT in fields or "spot" in fields or fields.get("strategy") == "SPOT":
        return "spot"
    if nodes.FLEX_START in fields:
        return "flex-start"
    if any("affinity" in path for path, _ in matches):
        return "on-demand"
    path = fields.get("reservationName") or fields.get("0") or fields.get(nodes.RESERVATION_NAME)
    if not isinstance(path, str):
        return None
    parts = path.split("/")
    project = fields.get(nodes.RESERVATION_PROJECT) or (parts[1] if len(parts) > 1 else None)
    return {"reservation": f"projects/{project}/reservations/{parts[-1]}" if project else parts[-1]}


def _duration(matches: Matches, _: Any) -> str | None:
    """Return seconds, as a number or as `3600s`, in the largest unit that divides them."""
    text = str(matches[0][1]).removesuffix("s")
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
        return None
    unit, size = next(((unit, size) for unit, size in _UNITS if int(text) % size == 0), ("s", 1))
    return f"{int(text) // size}{unit}"


def _restarts(_: Matches, body: Any) -> Any:
    if "scheduling" in body:
        return 0 if value_at(body, ("scheduling", "disableRetries")) else None
    times = value_at(body, ("spec", "failurePolicy", "maxRestarts"), 0)
    codes = [
        rule["values"]
        for _, rule in values_at(body, f"{_JOB}.podFailurePolicy.rules.*.onExitCodes")
        if isinstance(rule, dict)
        and rule.get("operator") == "NotIn"
        and isinstance(rule.get("values"), list)
    ]
    if not codes or not all(type(code) is int for code in codes[0]):
        return times
    return {"times": times, "exit_codes": _ranges(sorted(codes[0]))}


def _ranges(codes: Sequence[int]) -> list[int | str]:
    """Return ascending numbers with those that follow each other as a range: `127-255`."""
    starts = [code for code in codes if code - 1 not in codes]
    ends = [code for code in codes if code + 1 not in codes]
    return [
        start if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)
    ]


def _variables(matches: Matches, body: Any) -> dict[str, str]:
    """Return the variables with a text of their own; `extra` takes the others, such as references to secrets."""
    items = [value_at(body, path) for path in dict.fromkeys(path[:-1] for path, _ in matches)]
    return {
        item["name"]: expand(item.get("value") or "")
        for item in items
        if isinstance(item.get("name"), str)
        and "valueFrom" not in item
        and isinstance(item.get("value") or "", str)
    }


def _mounts(_: Matches, body: Any) -> dict[str, str]:
    """Return the folders of buckets by the path at which the first container sees them."""
    pod: Any = next((pod for _, pod in values_at(body, f"{_JOB}.template.spec")), {})
    places = {
        value_at(pod, ("containers", 0, "volumeMounts", *path[-2:-1], "name")): value
        for path, value in values_at(
            value_at(pod, ("containers", 0), {}), "volumeMounts.*.mountPath"
        )
    }
    mounts = {}
    for volume in value_at(pod, ("volumes",), ()):
        attributes = value_at(volume, ("csi", "volumeAttributes"), {})
        bucket = attributes.get("bucketName") if isinstance(attributes, dict) else None
        place = places.get(value_at(volume, ("name",)))
        if bucket and place:
            folder = re.search(r"(?:^|,)only-dir=([^,]*)", str(attributes.get("mountOptions")))
            mounts[str(place)] = f"gs://{bucket}/{folder[1] if folder else ''}".rstrip("/")
    return mounts


def _disks(_: Matches, body: Any) -> list[dict[str, Any]]:
    disks = [
        disk
        for _, disk in values_at(body, "tpu.nodeSpec.0.node.dataDisks.*")
        if isinstance(disk, dict)
    ]
    return [
        {"source": disk.get("sourceDisk")}
        | ({"read_only": False} if disk.get("mode") == "READ_WRITE" else {})
        for disk in disks
    ]


_LINE: Final = ("trainer.command", "figure")
_CONVERT: Final[Mapping[str, Callable[[Matches, Any], Any]]] = {
    "capacity": _capacity,
    "environments.<env>.labels": _labels,
    "trainer.env": _variables,
    "trainer.secrets": lambda _, __: None,
    "trainer.mounts": _mounts,
    "trainer.restarts": _restarts,
    "trainer.max_run_duration": _duration,
    "targets.gke.ttl": _duration,
    "targets.cloud-tpu.max_wait": _duration,
    # Of a slice that selects its topology, the annotation alone is no placement by a queue.
    "targets.gke.topology_aware": lambda _, body: (
        not any(values_at(body, f"**.nodeSelector.[{nodes.TOPOLOGY}]")) or None
    ),
    # Its other field is the DNS policy.
    "targets.gke.host_network": lambda matches, _: _mapping(matches, None).get("hostNetwork"),
    "targets.gke.containers_per_host": lambda _, body: len(
        value_at(body, (*POD, "containers"), ())
    ),
    "targets.gke.image_pull_secrets": _texts,
    "targets.cloud-tpu.tags": _texts,
    "targets.cloud-tpu.data_disks": _disks,
    "targets.cloud-tpu.external_ips": lambda matches, _: None if matches[0][1] else False,
}
"""By key; any other key has the value of its field."""
_ABSENT: Final[Mapping[str, Mapping[str, Any]]] = {
    "gke": {"targets.gke.service_account": "default", "targets.gke.ttl": None},
    "cloud-tpu": {"targets.cloud-tpu.external_ips": False},
}
"""The values that say what a missing field means to the server."""


# The program's command line as `command`, `args` and figures, so that each figure stands once.
#
# A word `name=number` is a figure if the name is the figure's own, or the one by which the framework of the command
# knows it. Words of a flag style become a mapping; a script, or a line of another form, stays text with placeholders.

BATCH_FIGURES: Final = ("batch_size", "per_device_batch_size")
_NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE]-?[0-9]{1,3})?"
_ROOT: Final = re.compile(r"--|[A-Za-z_][\w.]*=")
_NAME: Final = r"([A-Za-z_][\w.-]*)"
_OPTIONS: Final[Mapping[ArgStyle, re.Pattern[str]]] = {
    "--key=value": re.compile(rf"--{_NAME}(?:=(.*))?", re.DOTALL),
    "key=value": re.compile(rf"{_NAME}=(.*)", re.DOTALL),
    "--key value": re.compile(rf"--{_NAME}\0(.*)", re.DOTALL),
}
"""An option of each style, in the order in which they are tried; a pair of words is joined by a zero byte."""


class NumberText(str):
    """A number of the spec in the spelling of the file."""

    __slots__ = ()


class ProgramKeys(NamedTuple):
    """The start of the program, as keys of a spec."""

    trainer: dict[str, Any]
    """`command`, `arg_style` and `args`, those that are set."""
    figures: dict[str, NumberText]
    """The figures that the program is given, as keys of `training`."""
    names: Mapping[str, str]
    """The figures that are written as flags, with their names."""
    preset: str | None
    """The framework whose flags and arguments these are."""


def read_program(
    command: Sequence[str], args: Sequence[str], name: str, *, with_figures: bool = True
) -> ProgramKeys:
    """Return a command line as keys of a spec.

    Args:
        command: The words of the command; empty if the image's own starts the program.
        args: The further words.
        name: The job's name in the file.
        with_figures: False if the figures of the line stay in it.
    """
    words = [*command, *args]
    preset_name = next(
        (preset for preset in PRESETS if any(preset in word.lower() for word in words)), None
    )
    preset = PRESETS[preset_name] if preset_name else None
    head, style, options = (
        _split(words) if command or not args or _ROOT.match(args[0]) else (words, None, [])
    )
    figures = _GivenFigures(preset, with_figures=with_figures)
    if style is None:
        texts = {
            "command": [_with_own_run(figures.in_text(word), name) for word in command],
            "args": [_with_own_run(figures.in_text(word), name) for word in args],
        }
        return ProgramKeys(_set(texts), figures.all(), {}, None)
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
    return ProgramKeys(_set({**trainer, **styled}), figures.all(), names, preset_name)


def flags_of(program: ProgramKeys, figures: Iterable[str]) -> str | dict[str, Any] | None:
    """Return `training.flags` under which exactly the flags of the program are rendered.

    Args:
        program: The program.
        figures: The figures that the spec's `training` has; the batch of a device is worked out in any case.
    """
    preset = (
        PRESETS[program.preset].flags if program.preset else {figure: figure for figure in FIGURES}
    )
    flags = {
        figure: program.names.get(figure)
        for figure in dict.fromkeys((*FIGURES, *NAMED_FIGURES))
        if (figure in figures or figure in BATCH_FIGURES)
        and program.names.get(figure) != preset.get(figure)
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
    return (
        re.sub(rf"(?<![\w.-])run_name={re.escape(name)}(?![\w.-])", "run_name=${run}", text)
        if name
        else text
    )


class _GivenFigures:
    """The figures of one command line; the first value of each counts."""

    def __init__(self, preset: Preset | None, *, with_figures: bool) -> None:
        names = {
            figure: figure
            for figure in (*FIGURES, "per_device_batch_size", "sequence_length", "model_parallel")
        }
        names |= {figure: flag for figure, flag in (preset.flags.items() if preset else ()) if flag}
        if preset and preset.flags.get("batch_size") is None:
            names.pop("batch_size", None)
        self._by_name = {name: figure for figure, name in names.items()} if with_figures else {}
        self.numbers: dict[str, NumberText] = {}

    def in_options(
        self, options: Sequence[tuple[str, str | None]]
    ) -> tuple[list[tuple[str, str | None]], dict[str, str]]:
        """Return the options without those that are figures, and the flag of each figure."""
        names = [name for name, _ in options]
        flags: dict[str, str] = {}
        rest: list[tuple[str, str | None]] = []
        for name, value in options:
            figure = self._by_name.get(name)
            if (
                figure
                and value is not None
                and names.count(name) == 1
                and self._take(figure, value)
            ):
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

    def all(self) -> dict[str, NumberText]:
        """Return the figures; devices share an example where the batch of one is a fraction."""
        devices = Fraction(self.numbers.get("per_device_batch_size", "1")).denominator
        return ({"model_parallel": NumberText(devices)} if devices > 1 else {}) | self.numbers

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
        self.numbers[figure] = NumberText(text)
        return True


def _split(words: Sequence[str]) -> tuple[list[str], ArgStyle | None, list[tuple[str, str | None]]]:
    """Return the words before the options, the options' style and the options; the style of a script is None."""
    start = next((index for index, word in enumerate(words) if _ROOT.match(word)), len(words))
    head, rest = [*words[:start]], words[start:]
    if any("\n" in word or word in ("-c", "-lc", "-ec") for word in head):
        return [*words], None, []
    for style, option in _OPTIONS.items():
        options = [
            option.fullmatch(text) for text in (_pairs(rest) if style == "--key value" else rest)
        ]
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
        values = (
            []
            if name not in merged
            else merged[name]
            if isinstance(merged[name], list)
            else [merged[name]]
        )
        merged[name] = [*values, _plain(value)] if name in merged else _plain(value)
    return merged


def _plain(text: str | None) -> Any:
    """Return a number or a truth value that the config writes as it was, any other text as it is."""
    if text in ("true", "false"):
        return text == "true"
    if text and re.fullmatch(r"0|-?[1-9][0-9]{0,15}", text):
        return int(text)
    return text
