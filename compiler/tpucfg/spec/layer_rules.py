"""Rules about layers: settings that two layers dispute, and those that a layer removes."""

from collections.abc import Iterator, Mapping
from functools import reduce
from itertools import chain
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.schemas import load_schema
from tpucfg.spec.layers import (
    LAYERED,
    Layered,
    args_layer,
    deletion_help,
    layer_paths,
    layers_of,
    merge,
    merge_layers,
    present_layers,
    takes_away,
)
from tpucfg.spec.sections import apply_rules, compares
from tpucfg.text_format import dotted, nearest, yaml_example
from tpucfg.yamldoc import Document, KeyPath

PROGRAMS: Final = (("image",), ("package", "module"))
"""The keys of the two kinds of trainer: a container, or a Python package and its module. One kind is needed."""
_NAMED_ENTRIES: Final = ("args", "env", "secrets", "mounts", "xla_flags")
"""The mappings of a trainer whose keys a team names itself."""
_Job = tuple[str, str]
"""An environment and a size."""


def layer_findings(document: Document) -> Iterator[Finding]:
    """Yield the findings of every rule about layers of a valid document."""
    return apply_rules(_RULES, document)


def _jobs(document: Document) -> Iterator[_Job]:
    """Yield an environment and a size for every combination of layers that some job has."""
    data: Mapping[str, Any] = document.data
    shared = data.get("overrides", {})
    combinations: set[tuple[str, ...]] = set()
    for name, environment in data["environments"].items():
        own = environment.get("overrides", {})
        for size in environment.get("sizes", data.get("sizes", ())):
            combination = (name, size if size in shared else "", size if size in own else "")
            if combination not in combinations:
                combinations.add(combination)
                yield name, size


# Settings of two layers of equal standing.


@compares("environments", "sizes", "overrides", "capacity")
def _check_disputed_capacity(document: Document) -> Iterator[Finding]:
    """Yield an error for each capacity that an environment and a size set differently: either could be meant."""
    for name, size in _jobs(document):
        _, environment, override, both = ((*path, "capacity") for path in layer_paths(name, size))
        first, second = document.node(environment), document.node(override)
        if (
            first is None
            or second is None
            or document.node(both)
            or _text(first.value) == _text(second.value)
        ):
            continue
        message = f"the capacity of {size} in {name} is set twice: by {dotted(environment)} and by {dotted(override)}"
        hint = f"set {dotted(both)} to {_text(second.value)}, or to {_text(first.value)}"
        related = ((document.key_location(environment), f"the capacity of {name}"),)
        yield document.finding("TPU014", message, override, at_key=True, help=hint, related=related)


def _text(capacity: Any) -> str:
    return yaml_example(capacity or "on-demand")


@compares("overrides")
def _check_args_of_sizes(document: Document) -> Iterator[Finding]:
    """Yield an error for each flag in both args and trainer.args of a size, which are two spellings of one mapping."""
    for size, override in document.data.get("overrides", {}).items():
        for key in override.get("args") or ():
            other: KeyPath = ("overrides", size, "trainer", "args", key)
            if document.node(other):
                path: KeyPath = ("overrides", size, "args", key)
                message = f"the flag {key} is given twice: by {dotted(path)} and by {dotted(other)}"
                hint, related = (
                    f"delete {dotted(path)}",
                    ((document.key_location(other), "the flag in trainer.args"),),
                )
                yield document.finding(
                    "TPU050", message, path, at_key=True, help=hint, related=related
                )


@compares("environments", "sizes", "overrides", "trainer", "probe", "tune")
def _check_kinds_of_args(document: Document) -> Iterator[Finding]:
    """Yield an error for each list of args over a mapping, or mapping over a list: neither could be merged."""
    reported: set[KeyPath] = set()
    tried = document.data.get("tune", {}).get("args")
    # A value that `tpucfg tune` tries takes the place of a flag's, as in a last layer.
    last = () if tried is None else (args_layer(tried, ("tune",)),)
    for name, size in _jobs(document):
        below: Layered | None = None
        for layer in (*layers_of(document.data, name, size, is_probe=True), *last):
            args = layer.find("trainer", "args")
            if args is None or args.value is None:
                continue
            if (
                below
                and isinstance(below.value, list) != isinstance(args.value, list)
                and args.path not in reported
            ):
                reported.add(args.path)
                yield _other_kind(document, args, below)
            below = args


def _other_kind(document: Document, args: Layered, below: Layered) -> Finding:
    kind, other = (
        ("a list", "a mapping") if isinstance(args.value, list) else ("a mapping", "a list")
    )
    message = (
        f"{dotted(args.path)} is {kind}, and {dotted(below.path)} is {other}: they cannot be merged"
    )
    hint = f"delete {dotted(args.path)}" + (
        "" if args.path[0] == "tune" else f", or write it as {other}"
    )
    related = ((document.key_location(below.path), "the layer below"),)
    return document.finding("TPU006", message, args.path, help=hint, related=related)


# Removals of nothing.


@compares("environments", "sizes", "overrides", "probe", *LAYERED)
def _check_removals(document: Document) -> Iterator[Finding]:
    """Yield an error for each removal of an entry that no layer before it sets, in no job: its name is misspelt."""
    effective: set[KeyPath] = set()
    idle: dict[KeyPath, tuple[tuple[str, str, str], Layered | None]] = {}
    for name, size in _jobs(document):
        layers = tuple(layers_of(document.data, name, size, is_probe=True))
        for position, layer in enumerate(layers):
            for removed, setting in _removed_entries(layer):
                lower = reduce(merge, layers[:position], Layered({}, ()))
                below = lower.find(*setting[:-1])
                if below and below.find(setting[-1]):
                    effective.add(removed)
                else:
                    idle[removed] = (setting, below)
    for path in idle.keys() - effective:
        setting, below = idle[path]
        near = nearest(str(setting[-1]), tuple(below.children()) if below else ())
        hint = f"did you mean {near}?" if near else deletion_help(document, path)
        message = f"{dotted(path)} removes {dotted(setting)}, which no layer before it sets"
        yield document.finding("TPU015", message, path, at_key=True, help=hint)


def _removed_entries(layer: Layered) -> Iterator[tuple[KeyPath, tuple[str, str, str]]]:
    """Yield each entry that a layer takes away: its path in the spec, and its path below a layer."""
    trainer = layer.value.get("trainer") or {}
    for key in _NAMED_ENTRIES:
        entries = trainer.get(key)
        for entry, value in entries.items() if isinstance(entries, dict) else ():
            if takes_away(value, ("trainer", key)):
                setting = ("trainer", key, entry)
                yield layer.source(setting), setting


# The program.


@compares("environments", "sizes", "trainer")
def _check_programs(document: Document) -> Iterator[Finding]:
    """Yield an error for each layer that takes away the program of a job: the schema checks only the first layer."""
    for name, size in _jobs(document):
        # A null of the first layer may stay here: it is no program either.
        trainer = reduce(merge, layers_of(document.data, name, size)).value["trainer"]
        if any(all(trainer.get(key) is not None for key in keys) for keys in PROGRAMS):
            continue
        keys = chain.from_iterable(PROGRAMS)
        removals = [path for key in keys for path in _removals(document, name, size, key)]
        paths = layer_paths(name, size)
        path = max(removals, key=lambda removal: paths.index(removal[:-2]), default=("trainer",))
        message = (
            f"{dotted(path)} removes the program: a trainer needs image, or package and module"
        )
        hint = deletion_help(document, path)
        if path[0] == "trainer":
            example = load_schema("tpucfg")["$defs"]["trainer"]["properties"][str(path[-1])][
                "examples"
            ][0]
            hint = f"set {dotted(path)} to {example}, or to your own"
        yield document.finding("TPU005", message, path, at_key=True, help=hint)


@compares("environments", "sizes", "overrides", "trainer", "training")
def _check_fit(document: Document) -> Iterator[Finding]:
    """Yield an error for the first job whose fit `gate.fit` or `trainer.fit` asks for, without a step to compile."""
    flags = document.data["training"].get("flags", {})
    has_own_step = (flags if isinstance(flags, str) else flags.get("preset")) is not None
    gate = document.data.get("gate", {})
    is_asked = bool(gate.get("fit")) or any(
        document.node((*layer, "trainer", "fit")) for layer in present_layers(document)
    )
    for name, size in _jobs(document) if is_asked else ():
        layers = merge_layers(document.data, name, size)
        fit = layers.value["trainer"].get("fit")
        if (not gate.get("fit")) if fit is None else (has_own_step or fit.get("step")):
            continue
        path = ("gate", "fit") if fit is None else layers.source(("trainer", "fit"))
        section = dotted(("trainer", "fit") if fit is None else path)
        hint = (
            f"set {section} to {{}}"
            if has_own_step
            else f'set {section}.step to "trainer.fit:abstract_step"'
        )
        removals = [] if fit is not None else [*_removals(document, name, size, "fit")]
        hint = deletion_help(document, removals[-1]) if removals else hint
        hint += f", or delete {'gate.fit' if len(gate) > 1 else 'gate'}" if fit is None else ""
        needed = "a training step, of trainer.fit.step or `flags: maxtext`"
        message = f"{dotted(path)} needs {needed}, and {size} of {name} has none"
        yield document.finding("TPU005", message, path, at_key=fit is None, help=hint)
        return


def _removals(document: Document, environment: str, size: str, key: str) -> Iterator[KeyPath]:
    """Yield the paths of a key of the trainer in the layers in which it is null, the layer that wins last."""
    for layer in layer_paths(environment, size):
        node = document.node((*layer, "trainer", key))
        if node is not None and node.value is None:
            yield (*layer, "trainer", key)


_RULES: Final = (
    _check_disputed_capacity,
    _check_args_of_sizes,
    _check_kinds_of_args,
    _check_removals,
    _check_programs,
    _check_fit,
)
