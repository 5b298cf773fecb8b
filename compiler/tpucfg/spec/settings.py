"""The layered settings of one environment and size: capacity, trainer and the settings of each target."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import sort_keys
from tpucfg.spec.layers import LAYERED, Layered, layer_paths, merge_layers, present_layers
from tpucfg.spec.presets import ArgStyle, Preset
from tpucfg.yamldoc import Document, KeyPath

CapacityKind = Literal["on-demand", "spot", "flex-start", "reservation"]


class Arg(NamedTuple):
    """One of the program's own flags."""

    key: str
    """The flag without dashes; empty for a text of a list, which is written as it is."""
    values: tuple[str | None, ...]
    """The values in order, with their placeholders: a list repeats the flag, None is a bare flag."""
    path: KeyPath

    @property
    def name(self) -> str:
        """The name of the flag; for a text of a list, its part before `=`."""
        return self.key or (self.values[0] or "").removeprefix("--").partition("=")[0]


class Capacity(NamedTuple):
    """The way in which the machines are obtained."""

    kind: CapacityKind = "on-demand"
    reservation: str | None = None
    """For a reservation: its name, or `projects/<project>/reservations/<name>`."""
    is_set: bool = True
    """False if no layer sets it: it is then priced as on-demand, also where something else decides."""

    @property
    def reservation_project(self) -> str | None:
        """The Google project that shares the reservation; None if the environment's own project has it."""
        project, _, _ = (
            (self.reservation or "").removeprefix("projects/").rpartition("/reservations/")
        )
        return project or None

    @property
    def reservation_name(self) -> str | None:
        """The reservation's name alone; None for another kind of capacity."""
        return self.reservation.rpartition("/")[2] if self.reservation else None


class Secret(NamedTuple):
    """An environment variable whose value is in Secret Manager."""

    variable: str
    project: str | None
    """The Google project of the secret; None is the environment's own."""
    name: str
    version: str
    """A number, or `latest`."""


class Mount(NamedTuple):
    """A folder of the program that shows a bucket or a folder of one."""

    path: str
    """The mount point, an absolute path."""
    source: str
    """`gs://<bucket>` or `gs://<bucket>/<folder>`, with placeholders."""


class Duration(NamedTuple):
    """A span of time, and its text in the spec."""

    seconds: int
    text: str

    @classmethod
    def read(cls, text: str) -> "Duration":
        """Parse a whole number and its unit: `12h`."""
        return cls(int(text[:-1]) * _SECONDS[text[-1]], text)


class ExitCodes(NamedTuple):
    """Exit codes of the program, in ascending order, and their text in the spec."""

    codes: tuple[int, ...]
    text: str

    @classmethod
    def read(cls, items: Sequence[int | str]) -> "ExitCodes":
        """Expand single codes and ranges: `42`, `127-255`."""
        codes: set[int] = set()
        for item in items:
            first, _, last = str(item).partition("-")
            codes.update(range(int(first), int(last or first) + 1))
        return cls(tuple(sorted(codes)), ", ".join(map(str, items)))


PRESET: Final[KeyPath] = ("training", "flags")
"""The path of the arguments that a preset adds."""
DEFAULT_PYTHON: Final = "python3"
_DEFAULTS: Final = r"[^\s\"']+\.yml"
"""A file of defaults in the words of a command, which may be a script."""
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class FitStep(NamedTuple):
    """The training step that the TPU compiler can compile without a TPU."""

    step: str
    """The function that returns the step and its abstract arguments: `<module>:<function>`; or a framework's own step:
    the name of its preset, and after a space the file of defaults that the command names."""
    python: str
    """The Python with the trainer's packages: a path relative to the spec's folder, or a name on the PATH."""


class Trainer(NamedTuple):
    """The training program: a container image, or a Python package and its module."""

    image: str | None
    worker_image: str | None
    package: str | None
    module: str | None
    command: tuple[str, ...]
    """The program and its first arguments; empty if the image decides."""
    arg_style: ArgStyle
    runtime: str | None
    python: str | None
    args: tuple[Arg, ...]
    env: tuple[tuple[str, str], ...]
    secrets: tuple[Secret, ...]
    mounts: tuple[Mount, ...]
    xla_flags: Mapping[str, tuple[str, ...]]
    """Flags of the TPU compiler by generation."""
    restarts: int | None
    """Restarts of the program after a failure; None leaves the service's own rule."""
    exit_codes: ExitCodes | None
    """The exit codes of failures that are worth a restart; None if all of them are."""
    max_run_duration: Duration | None
    fit: FitStep | None
    """None if the spec names no step to compile."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that the program gets, with their placeholders: its command, its arguments and its variables."""
        args = (text for arg in self.args for text in arg.values if text)
        return (*self.command, *args, *(text for _, text in self.env))


class Settings(NamedTuple):
    """The layered settings of one environment and size."""

    capacity: Capacity
    trainer: Trainer
    targets: Mapping[str, Mapping[str, Any]]
    """The settings that only one target knows, as written in the spec."""
    layers: Layered
    """The settings as plain data, with the path of each."""
    layer_paths: tuple[KeyPath, ...]
    """The paths of the layers. In one spec, settings with equal paths are the same."""

    def source(self, path: KeyPath) -> KeyPath:
        """Return the path in the spec of a setting such as `("trainer", "image")`; it need not be set."""
        return self.layers.source(path)


def resolve_settings(
    document: Document, preset: Preset | None, *, is_probe: bool = False
) -> Mapping[tuple[str, str], Settings]:
    """Return the settings of every environment and rung; those with equal layers share one value.

    The preset gives the style of the arguments where no layer does. A probe has arguments of its own.
    """
    data, by_layers, settings = document.data, {}, {}
    layered = {path for path in present_layers(document) if _is_layered(document, path)}
    pairs = [("", "")]
    for name, value in data["environments"].items():
        pairs += [
            (name, size) for size in ("", *(value["sizes"] if "sizes" in value else data["sizes"]))
        ]
    for pair in pairs:
        present = tuple(path for path in layer_paths(*pair) if path in layered)
        if present not in by_layers:
            layers = merge_layers(data, *pair, is_probe=is_probe)
            trainer = _trainer(document, layers, preset, is_probe=is_probe)
            by_layers[present] = Settings(
                capacity=_capacity(layers.value.get("capacity")),
                trainer=trainer,
                targets=sort_keys(layers.value.get("targets", {})),
                layers=layers,
                layer_paths=present,
            )
        settings[pair] = by_layers[present]
    return settings


def _is_layered(document: Document, path: KeyPath) -> bool:
    node = document.node(path)
    return node is not None and any(key in node.value for key in (*LAYERED, "args"))


def _capacity(value: Any) -> Capacity:
    if isinstance(value, dict):
        return Capacity("reservation", value["reservation"])
    return Capacity(value) if value else Capacity(is_set=False)


def _trainer(
    document: Document, layers: Layered, preset: Preset | None, *, is_probe: bool
) -> Trainer:
    value = layers.value["trainer"]
    args = _args(document, layers.find("trainer", "args"))
    of_preset = {**preset.args, **(preset.probe_args if is_probe else {})} if preset else {}
    written = {*(arg.name for arg in args), *document.data["training"].get("steps", {})}
    duration, restarts = value.get("max_run_duration"), value.get("restarts")
    rule = restarts if isinstance(restarts, dict) else {"times": restarts}
    # Fields that are not among these have the value in the spec.
    built = {
        "command": tuple(value.get("command") or ()),
        "arg_style": value.get("arg_style") or (preset.arg_style if preset else "--key=value"),
        # What the spec sets itself, the preset does not add.
        "args": (
            *args,
            *(Arg(key, (text,), PRESET) for key, text in of_preset.items() if key not in written),
        ),
        "env": tuple(_items(value, "env")),
        "secrets": tuple(_secret(variable, text) for variable, text in _items(value, "secrets")),
        "mounts": tuple(Mount(path, source) for path, source in _items(value, "mounts")),
        "xla_flags": {generation: tuple(flags) for generation, flags in _items(value, "xla_flags")},
        "restarts": rule["times"],
        "exit_codes": ExitCodes.read(rule["exit_codes"]) if "exit_codes" in rule else None,
        "max_run_duration": Duration.read(duration) if duration else None,
        "fit": _fit_step(value.get("fit"), value.get("command") or (), preset),
    }
    return Trainer(**{key: value.get(key) for key in Trainer._fields} | built)


def _fit_step(
    value: Mapping[str, Any] | None, command: Iterable[str], preset: Preset | None
) -> FitStep | None:
    if value is None:
        return None
    own = [preset.step, *re.findall(_DEFAULTS, " ".join(command))[:1]] if preset else []
    return FitStep(value.get("step") or " ".join(own), value.get("python") or DEFAULT_PYTHON)


def _items(value: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    """Return the sorted items of a mapping in a value."""
    return sorted(value.get(key, {}).items())


def _secret(variable: str, text: str) -> Secret:
    parts = text.split("/")
    if parts[0] == "projects" and parts[2:3] == ["secrets"]:
        _, project, _, name, _, version = parts
        return Secret(variable, project, name, version)
    name, *versions = parts
    return Secret(variable, None, name, versions[0] if versions else "latest")


def _args(document: Document, args: Layered | None) -> tuple[Arg, ...]:
    """Return the arguments of a mapping of flags, or of a list of texts."""
    if args is None or not args.value:
        return ()
    if isinstance(args.value, list):
        return tuple(
            Arg("", (text,), args.source((index,))) for index, text in enumerate(args.value)
        )
    return tuple(
        Arg(key, _values(document, arg.path), arg.path) for key, arg in args.children().items()
    )


def _values(document: Document, path: KeyPath) -> tuple[str | None, ...]:
    node = document.node(path)
    children = node.children if node is not None and isinstance(node.value, list) else (node,)
    return tuple(_argument_text(child) for child in children)


def _argument_text(node: Any) -> str | None:
    """Return a value as command-line text: true and false in lower case, a number as in the spec."""
    if node.value is None or isinstance(node.value, str):
        return node.value
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.text)
