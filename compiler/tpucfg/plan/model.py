"""What planning makes of a spec: rungs with all their figures, and jobs."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.spec.model import Environment, Project


class Selection(NamedTuple):
    """Which jobs a command is about; empty means all."""

    environments: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    target: str | None = None
    """Instead of the target that the spec names."""
    run: str | None = None


class Rung(NamedTuple):
    """One size of a ladder with every figure worked out."""

    slice: Slice
    cores_scale: Fraction
    """Cores of this rung over cores of the size that the training was tuned on."""
    scale: Fraction
    """What steps are divided by, and the learning rate follows: cores_scale, unless the batch is overridden."""
    batch_size: int
    """Examples of one step, over all cores."""
    steps: Mapping[str, int]
    """train_steps first, where the run is counted in steps, then every other figure counted in steps."""
    epochs: str | None
    learning_rate: str | None
    overridden: frozenset[str]
    """The figures that the spec sets for this rung."""

    @property
    def size(self) -> str:
        """The accelerator type: `v3-32`."""
        return self.slice.size

    @property
    def per_core(self) -> Fraction:
        """Examples of one step on one core."""
        return Fraction(self.batch_size, self.slice.cores)

    @property
    def train_steps(self) -> int | None:
        """Steps of the whole run; None where it is counted in epochs."""
        return self.steps.get("train_steps")

    @property
    def examples(self) -> int | None:
        """Examples that the whole run sees; None where it is counted in epochs."""
        return self.batch_size * self.steps["train_steps"] if "train_steps" in self.steps else None


class Job(NamedTuple):
    """One environment and one rung: everything that a target needs to write its message."""

    project: str
    """The project's name in the spec."""
    environment: Environment
    rung: Rung
    target: str
    run: str | None
    name: str
    """`<name>-<env>-<size>` and `-<run>`."""
    bucket: str
    """The bucket's name; `gs://` before it is the placeholder `${bucket}`."""
    job_dir: str
    zone: str | None
    """The zone of the slice in the environment's region; None where no list knows one."""
    account: str
    """The account's address that the environment's stack makes for its jobs."""
    image: str | None
    worker_image: str | None
    package: str | None
    module: str | None
    runtime: str | None
    python: str | None
    args: tuple[str, ...]
    """The program's command line: the spec's own flags, then the figures of the rung."""
    env: tuple[tuple[str, str], ...]
    options: Mapping[str, Any]
    """The settings that only this target knows."""

    @property
    def slice(self) -> Slice:
        """The slice that the job runs on."""
        return self.rung.slice

    @property
    def size(self) -> str:
        """The accelerator type: `v3-32`."""
        return self.rung.slice.size


class Plan(NamedTuple):
    """The selected jobs, and what is to be said about them."""

    project: Project
    jobs: tuple[Job, ...]
    """By the environments' names, each in the order of its ladder. Empty where no rung can be worked out."""
    findings: tuple[Finding, ...]
