"""Document to Project: the schema first, then what no schema can say of the structure."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import MOST, RULES, Finding, collect, errors
from tpucfg.spec.document import Document, Path, extent
from tpucfg.spec.model import Arg, Environment, Gate, Number, Override, Project, Trainer, Training
from tpucfg.spec.placeholders import check_placeholders
from tpucfg.spec.reader import read_file
from tpucfg.spec.sound import of_text, sound_part
from tpucfg.wording import dotted, listed, named, nearest

OVERRIDABLE: Final = ("batch_size", "learning_rate", "machine", "args")
"""What an override may hold besides the keys of training.steps."""
MOST_REPEATED: Final = 2_000
"""Values of a target's `extra`, or of the program's args: a pod has some hundred."""
OWN_LABELS: Final = ("tpucfg-project", "tpucfg-environment")
"""Labels by which the bucket of an environment says whose it is; a test holds that the stack program writes them."""
_FIGURES: Final = ("batch_size", "train_steps", "epochs", "learning_rate")


def load(path: FilePath) -> tuple[Project | None, tuple[Finding, ...]]:
    """The project in a file, and every finding about its text and structure. No project where one is an error."""
    return from_document(read_file(path))


def from_document(document: Document) -> tuple[Project | None, tuple[Finding, ...]]:
    """The same for a text that was read before."""
    project, found = examine(document)
    return (None if project is None or project.broken else project), found


class Examined(NamedTuple):
    """What can be said of a spec, whatever is wrong with it."""

    project: Project | None
    """With stand-ins for what is broken; None where there is nothing to go on."""
    findings: tuple[Finding, ...]


def examine(document: Document) -> Examined:
    """The project, as far as the document holds, and every finding about its text and structure."""
    if document.root is None:
        return Examined(None, collect(document.findings))
    found = [*document.findings]
    known = {finding.place[:3] for finding in found}
    found += [it for it in schemas.explain("tpucfg", document, schemas.SPEC) if it.place[:3] not in known]
    if len(found) > MOST:
        return Examined(None, collect(found))
    sound, broken = sound_part(document, errors(found)) if errors(found) else (document, frozenset[str]())
    if not schemas.valid("tpucfg", sound.data):
        return Examined(None, collect(found))
    found += of_text([*_structure(sound, broken), *islice(check_placeholders(sound), MOST)])
    if errors(found):
        sound, broken = sound_part(document, errors(found))
    return Examined(_project(sound, broken), collect(found))


def _structure(document: Document, broken: frozenset[str]) -> Iterator[Finding]:
    for rule, read in _RULES.items():
        if not broken & read:
            yield from rule(document)


def _ladders(document: Document) -> Iterator[Finding]:
    if "sizes" in document.data:
        return
    hint = "add sizes: [v2-8, v2-32]"
    environments = document.data["environments"]
    if not any("sizes" in environment for environment in environments.values()):
        message = "the file needs the key sizes, as no environment has its own"
        yield Finding.of("TPU005", message, document.key(("sizes",)), help=hint)
        return
    for name, environment in environments.items():
        if "sizes" not in environment:
            message = f"environments.{name} has no sizes, and there are none at the top"
            yield Finding.of(
                "TPU005", message, document.key(("environments", name)), help=f"{hint}, here or at the top"
            )


def _override_keys(document: Document) -> Iterator[Finding]:
    steps = tuple(document.data["training"].get("steps", {}))
    for size, override in document.data.get("overrides", {}).items():
        for key in override:
            if key not in OVERRIDABLE and key not in steps:
                yield _unknown_override(document, size, key, steps)


def _unknown_override(document: Document, size: str, key: str, steps: tuple[str, ...]) -> Finding:
    place, where = document.key(("overrides", size, key)), dotted(("overrides", size))
    if key in {"train_steps", "epochs"}:
        message = f"{where} cannot hold {key}: it follows from the batch, so that the examples seen stay"
        return Finding.of("TPU004", message, place, help=f"override batch_size, or change training.{key}")
    known = (*OVERRIDABLE, *steps)
    near = nearest(key, known)
    return Finding.of(
        "TPU004",
        f"{where} has no key {named(key)}",
        place,
        help=f"did you mean {near}?"
        if near
        else f"add {named(key)} to training.steps if it is counted in steps, or delete it",
        details=(f"it takes: {listed(known)}",),
    )


def _step_keys(document: Document) -> Iterator[Finding]:
    """A figure is known by its key, in flags and in overrides, so no two may have the same."""
    for key in document.data["training"].get("steps", {}):
        if key in (*_FIGURES, *OVERRIDABLE):
            message = f"{key} cannot be a key of training.steps: it is the name of something else"
            place = document.key(("training", "steps", key))
            yield Finding.of("TPU007", message, place, help="give it another name; training.flags names its flag")


def _flag_keys(document: Document) -> Iterator[Finding]:
    training = document.data["training"]
    figures = (*_FIGURES, *training.get("steps", {}))
    for key in training.get("flags", {}):
        if key not in figures:
            near = nearest(key, figures)
            yield Finding.of(
                "TPU004",
                f"training.flags names {named(key)}, which is no figure of training",
                document.key(("training", "flags", key)),
                help=f"did you mean {near}?" if near else f"delete training.flags.{named(key)}",
                details=(f"it takes: {listed(figures)}",),
            )


def _allowed_ids(document: Document) -> Iterator[Finding]:
    allowable = [rule.id for rule in RULES.values() if rule.allowable]
    for id_ in document.data.get("allow", {}):
        if id_ not in allowable:
            known = id_ in RULES
            said = (
                f"{id_} cannot be allowed: {RULES[id_].title} is no matter of judgement"
                if known
                else f"there is no finding {id_}"
            )
            hint = f"delete allow.{id_}" + (", and fix what it says" if known else "")
            details = ("what can be allowed is listed by: tpucfg explain",)
            yield Finding.of("TPU007", said, document.key(("allow", id_)), help=hint, details=details)


def _labels(document: Document) -> Iterator[Finding]:
    for name, environment in document.data["environments"].items():
        for key in environment.get("labels", {}):
            if key in OWN_LABELS:
                path = ("environments", name, "labels", key)
                message = f"{dotted(path[:-1])} cannot hold {key}: the stack gives its bucket that label itself"
                hint = f"delete {key}, or give it another key"
                yield Finding.of("TPU007", message, document.key(path), help=hint)


def _extent(document: Document) -> Iterator[Finding]:
    """What every config of every job repeats is bounded, where a schema cannot count it."""
    parts: list[Path] = [("targets", name, "extra") for name in document.data.get("targets", {})]
    parts += [("trainer", "args"), *(("overrides", size, "args") for size in document.data.get("overrides", {}))]
    for path in parts:
        node = document.node(path)
        values = extent(node)[0] if node else 0
        if values > MOST_REPEATED:
            message = (
                f"{dotted(path)} holds {values:,} values; the most is {MOST_REPEATED:,}, as every config repeats them"
            )
            hint = "put them into a file that the program reads, beside the image or in the bucket"
            yield Finding.of("TPU010", message, document.key(path), help=hint)


_RULES: Final[Mapping[Callable[[Document], Iterator[Finding]], frozenset[str]]] = {
    _ladders: frozenset(("sizes", "environments")),
    _override_keys: frozenset(("overrides", "training")),
    _step_keys: frozenset(("training",)),
    _flag_keys: frozenset(("training",)),
    _allowed_ids: frozenset(("allow",)),
    _labels: frozenset(("environments",)),
    _extent: frozenset(("trainer", "targets", "overrides")),
}
"""The rules of structure, each with the sections that it compares."""


def _project(document: Document, broken: frozenset[str]) -> Project:
    """The order of keys in a spec means nothing, so it is lost here; only args are a list of flags and keep theirs."""
    data = document.data
    gate = data.get("gate")
    return Project(
        name=data["name"],
        environments={name: _environment(name, value, data) for name, value in sorted(data["environments"].items())},
        trainer=_trainer(document, data["trainer"]),
        training=_training(document, data["training"]),
        overrides={size: _override(document, size, value) for size, value in data.get("overrides", {}).items()},
        targets=_ordered(data.get("targets", {})),
        gate=Gate(*(gate.get(key) for key in ("min_scaling_efficiency", "metric", "goal", "max_drop")))
        if gate
        else None,
        prices={name: _number(document, ("prices", name)) for name in data.get("prices", {})},
        allow=data.get("allow", {}),
        document=document,
        broken=broken,
    )


def _environment(name: str, value: Mapping[str, Any], data: Mapping[str, Any]) -> Environment:
    return Environment(
        name=name,
        project=value["project"],
        region=value["region"],
        target=value.get("target", data["target"]),
        sizes=tuple(value["sizes"] if "sizes" in value else data["sizes"]),
        sizes_path=("environments", name, "sizes") if "sizes" in value else ("sizes",),
        bucket=value.get("bucket"),
        zones=value.get("zones", {}),
        labels=_ordered(value.get("labels", {})),
        protect=value.get("protect", False),
        keep_data=value.get("keep_data", True),
        kube_context=value.get("kube_context"),
    )


def _trainer(document: Document, value: Mapping[str, Any]) -> Trainer:
    texts = {key: value.get(key) for key in ("image", "worker_image", "package", "module", "runtime", "python")}
    env = tuple(sorted(value.get("env", {}).items()))
    return Trainer(**texts, args=_args(document, ("trainer", "args")), env=env)


def _training(document: Document, value: Mapping[str, Any]) -> Training:
    return Training(
        tuned_on=value["tuned_on"],
        batch_size=int(value["batch_size"]),
        train_steps=int(value["train_steps"]) if "train_steps" in value else None,
        epochs=_number(document, ("training", "epochs")) if "epochs" in value else None,
        learning_rate=_number(document, ("training", "learning_rate")) if "learning_rate" in value else None,
        learning_rate_rule=value.get("learning_rate_rule", "keep"),
        steps={key: int(count) for key, count in sorted(value.get("steps", {}).items())},
        flags=value.get("flags", {}),
    )


def _override(document: Document, size: str, value: Mapping[str, Any]) -> Override:
    path = ("overrides", size)
    return Override(
        batch_size=int(value["batch_size"]) if "batch_size" in value else None,
        learning_rate=_number(document, (*path, "learning_rate")) if "learning_rate" in value else None,
        machine=value.get("machine"),
        steps={key: int(count) for key, count in value.items() if key not in OVERRIDABLE},
        args=_args(document, (*path, "args")),
    )


def _number(document: Document, path: Path) -> Number:
    return Number.read(document.written(path))


def _args(document: Document, path: Path) -> tuple[Arg, ...]:
    node = document.node(path)
    return tuple(Arg(key, _values(document, (*path, key)), (*path, key)) for key in (node.keys if node else ()))


def _values(document: Document, path: Path) -> tuple[str | None, ...]:
    node = document.node(path)
    children = node.children if node is not None and isinstance(node.value, list) else (node,)
    return tuple(_argument(child) for child in children)


def _argument(node: Any) -> str | None:
    """As the program's command line has it: true and false in lower case, a number as the spec writes it."""
    if node.value is None or isinstance(node.value, str):
        return node.value
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.text)


def _ordered(value: Any) -> Any:
    """Plain data with the keys of every mapping sorted; lists keep their order."""
    if isinstance(value, dict):
        return {key: _ordered(item) for key, item in sorted(value.items())}
    return [_ordered(item) for item in value] if isinstance(value, list) else value
