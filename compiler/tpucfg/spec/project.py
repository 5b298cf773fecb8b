"""The spec as immutable values, the input of the rest of the compiler.

Numbers that reach the trainer keep their source text: `1e-3` stays `1e-3`.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple

from tpucfg.yamldoc.document import Document, KeyPath

LearningRateRule = Literal["keep", "linear", "sqrt"]


class Number(NamedTuple):
    """The exact value of a number, and its text in the spec."""

    value: Fraction
    text: str

    @classmethod
    def read(cls, text: str) -> "Number":
        """Parse a number of the spec."""
        # Fraction reads decimal forms only; YAML 1.2 has `0x1F` and `0o17` as well.
        is_decimal = "x" not in text and "o" not in text
        return cls(Fraction(text) if is_decimal else Fraction(int(text, 0)), text)


class Arg(NamedTuple):
    """One of the program's own flags."""

    key: str
    values: tuple[str | None, ...]
    """The values in order, with their placeholders: a list repeats the flag, None is a bare flag."""
    path: KeyPath


class Trainer(NamedTuple):
    """The training program: a container image, or a Python package and its module."""

    image: str | None
    worker_image: str | None
    package: str | None
    module: str | None
    runtime: str | None
    python: str | None
    args: tuple[Arg, ...]
    env: tuple[tuple[str, str], ...]


class Training(NamedTuple):
    """The settings that change from rung to rung, as they were tuned on one size."""

    tuned_on: str
    batch_size: int
    """The examples of one step, over all cores of `tuned_on`."""
    train_steps: int | None
    epochs: Number | None
    """Either steps or epochs is set; the schema refuses both."""
    learning_rate: Number | None
    learning_rate_rule: LearningRateRule
    steps: Mapping[str, int]
    """Every other setting that is counted in steps."""
    flags: Mapping[str, str | None]
    """The program's flag for a setting; None omits it."""


OVERRIDABLE: Final = ("batch_size", "learning_rate", "machine", "args")
"""The keys of an override, besides those of training.steps."""


class Override(NamedTuple):
    """The settings of one rung that differ from the rest of the ladder."""

    batch_size: int | None = None
    learning_rate: Number | None = None
    machine: str | None = None
    steps: Mapping[str, int] | None = None
    args: tuple[Arg, ...] = ()


class Environment(NamedTuple):
    """A Google project and a region, and the ladder that runs there."""

    name: str
    project: str
    region: str
    target: str
    sizes: tuple[str, ...]
    sizes_path: KeyPath
    """The path of the ladder: in the environment, or at the top level."""
    bucket: str | None
    """The bucket's name if the spec sets one."""
    zones: Mapping[str, str]
    labels: Mapping[str, str]
    protect: bool
    keep_data: bool
    kube_context: str | None

    @property
    def path(self) -> KeyPath:
        """The path of the environment in the spec."""
        return ("environments", self.name)


class Gate(NamedTuple):
    """The conditions for starting the next rung."""

    min_scaling_efficiency: float
    metric: str | None
    goal: str | None
    max_drop: float | None


class Project(NamedTuple):
    """One spec, with its document for the locations of findings."""

    name: str
    environments: Mapping[str, Environment]
    trainer: Trainer
    training: Training
    overrides: Mapping[str, Override]
    targets: Mapping[str, Mapping[str, Any]]
    """The settings that only one target knows, as written in the spec."""
    gate: Gate | None
    prices: Mapping[str, Number]
    allow: Mapping[str, str]
    allow_drift: Mapping[str, str]
    """The reason for each resource whose drift is known, by URN."""
    document: Document
    broken: frozenset[str] = frozenset()
    """The sections with errors, which are replaced by stand-ins: such a project has findings, but no jobs."""


def build_project(document: Document, broken: frozenset[str]) -> Project:
    """Return the project of a valid document. `broken` names the sections that are replaced by stand-ins.

    The order of keys has no meaning in a spec, so it is normalized here; only args are an ordered list of flags.
    """
    data = document.data
    return Project(
        name=data["name"],
        environments={name: _environment(name, value, data) for name, value in sorted(data["environments"].items())},
        trainer=_trainer(document, data["trainer"]),
        training=_training(document, data["training"]),
        overrides={size: _override(document, size, value) for size, value in data.get("overrides", {}).items()},
        targets=_sorted_keys(data.get("targets", {})),
        gate=_gate(data.get("gate")),
        prices={name: _number(document, ("prices", name)) for name in data.get("prices", {})},
        allow=data.get("allow", {}),
        allow_drift=data.get("allow_drift", {}),
        document=document,
        broken=broken,
    )


def _gate(value: Mapping[str, Any] | None) -> Gate | None:
    if not value:
        return None
    return Gate(value["min_scaling_efficiency"], value.get("metric"), value.get("goal"), value.get("max_drop"))


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
        labels=_sorted_keys(value.get("labels", {})),
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
        # int(), because the schema accepts 4e3 as a whole number, which YAML reads as a float.
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


def _number(document: Document, path: KeyPath) -> Number:
    return Number.read(document.source_text(path))


def _args(document: Document, path: KeyPath) -> tuple[Arg, ...]:
    node = document.node(path)
    return tuple(Arg(key, _values(document, (*path, key)), (*path, key)) for key in (node.keys if node else ()))


def _values(document: Document, path: KeyPath) -> tuple[str | None, ...]:
    node = document.node(path)
    children = node.children if node is not None and isinstance(node.value, list) else (node,)
    return tuple(_argument_text(child) for child in children)


def _argument_text(node: Any) -> str | None:
    """Return a value as command-line text: true and false in lower case, a number as in the spec."""
    if node.value is None or isinstance(node.value, str):
        return node.value
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.text)


def _sorted_keys(value: Any) -> Any:
    """Return plain data with the keys of every mapping sorted; lists keep their order."""
    if isinstance(value, dict):
        return {key: _sorted_keys(item) for key, item in sorted(value.items())}
    return [_sorted_keys(item) for item in value] if isinstance(value, list) else value
