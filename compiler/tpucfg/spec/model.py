"""The spec as frozen values: what the rest of the compiler works on.

Numbers that reach the trainer are kept beside the text they were written as: `1e-3` stays `1e-3`.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple

from tpucfg.spec.document import Document, Path

LearningRateRule = Literal["keep", "linear", "sqrt"]


class Number(NamedTuple):
    """A number, exactly, and as the spec writes it."""

    value: Fraction
    text: str

    @classmethod
    def read(cls, text: str) -> "Number":
        """A number as a spec writes it; `0x1F` and `0o17` are numbers too."""
        return cls(Fraction(text) if "x" not in text and "o" not in text else Fraction(int(text, 0)), text)


class Arg(NamedTuple):
    """One of the program's own flags."""

    key: str
    values: tuple[str | None, ...]
    """In order; a list repeats the flag, None is a bare flag. Placeholders are not filled in yet."""
    path: Path


class Trainer(NamedTuple):
    """The program: a container image, or a Python package and its module."""

    image: str | None
    worker_image: str | None
    package: str | None
    module: str | None
    runtime: str | None
    python: str | None
    args: tuple[Arg, ...]
    env: tuple[tuple[str, str], ...]


class Training(NamedTuple):
    """The figures that change from rung to rung, as they were tuned on one size."""

    tuned_on: str
    batch_size: int
    """Examples of one step, over all cores of `tuned_on`."""
    train_steps: int | None
    epochs: Number | None
    """Either steps or epochs; the schema refuses both."""
    learning_rate: Number | None
    learning_rate_rule: LearningRateRule
    steps: Mapping[str, int]
    """Every other figure counted in steps."""
    flags: Mapping[str, str | None]
    """The flag that the program knows a figure by; None leaves it out."""


OVERRIDABLE: Final = ("batch_size", "learning_rate", "machine", "args")
"""What an override may hold besides the keys of training.steps."""


class Override(NamedTuple):
    """What one rung does otherwise."""

    batch_size: int | None = None
    learning_rate: Number | None = None
    machine: str | None = None
    steps: Mapping[str, int] | None = None
    args: tuple[Arg, ...] = ()


class Environment(NamedTuple):
    """A Google project and a region, and the ladder that is climbed there."""

    name: str
    project: str
    region: str
    target: str
    sizes: tuple[str, ...]
    sizes_path: Path
    """Where the ladder stands: in the environment, or at the top."""
    bucket: str | None
    """The bucket's name where the spec gives one."""
    zones: Mapping[str, str]
    labels: Mapping[str, str]
    protect: bool
    keep_data: bool
    kube_context: str | None

    @property
    def path(self) -> Path:
        """Where the environment stands in the spec."""
        return ("environments", self.name)


class Gate(NamedTuple):
    """When the next rung may be climbed."""

    min_scaling_efficiency: float
    metric: str | None
    goal: str | None
    max_drop: float | None


class Project(NamedTuple):
    """One spec, with its document for the places of findings."""

    name: str
    environments: Mapping[str, Environment]
    trainer: Trainer
    training: Training
    overrides: Mapping[str, Override]
    targets: Mapping[str, Mapping[str, Any]]
    """The settings that only one target knows, as the spec has them."""
    gate: Gate | None
    prices: Mapping[str, Number]
    allow: Mapping[str, str]
    document: Document
    broken: frozenset[str] = frozenset()
    """Sections with an error in them, for which stand-ins are held: nothing is planned from such a project."""
