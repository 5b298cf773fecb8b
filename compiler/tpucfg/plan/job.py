"""Build the job of an environment and a rung: names, folders and the program's command line."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from tpucfg.catalog import TARGET_FACTS, Slice
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.naming import account_email, bucket_of, job_name, zone_of
from tpucfg.plan.rung import Rung, figure_flags, figure_texts, slice_in_force
from tpucfg.spec import (
    PRESET,
    Capacity,
    Duration,
    Environment,
    Mount,
    Project,
    Secret,
    Settings,
    Trainer,
)
from tpucfg.spec.placeholders import fill_placeholders
from tpucfg.spec.presets import ArgStyle
from tpucfg.spec.project import RESERVED_LABELS

PROBE: Final = "probe"
"""The part of a probe's name and folder by which they differ from those of the whole run."""
XLA_FLAGS_VARIABLE: Final = "LIBTPU_INIT_ARGS"
"""The variable from which libtpu reads the flags of its compiler."""


class Job(NamedTuple):
    """One environment and one rung, with every value that a target's request body needs."""

    project: str
    """The project's name in the spec."""
    environment: Environment
    rung: Rung
    settings: Settings
    """The layered settings of the environment and the size, with the path of each in the spec."""
    run: str | None
    name: str
    """`<name>-<env>-<size>`, with `-<run>` if the job has a run id."""
    bucket: str
    """The bucket's bare name; the placeholder `${bucket}` adds `gs://`."""
    job_dir: str
    zone: str | None
    """The zone of the slice in the environment's region; None if no list names one."""
    account: str
    """E-mail of the service account that the environment's stack creates for its jobs."""
    image: str | None
    worker_image: str | None
    package: str | None
    module: str | None
    runtime: str | None
    python: str | None
    command: tuple[str, ...]
    """The program and its first arguments; empty if the image decides."""
    flags: tuple[tuple[str, str | None], ...]
    """The flags of `args`, then the figures of the rung, by name; the text of a bare flag is None."""
    args: tuple[str, ...]
    """The words of the command line: `args` and the figures, in the style of the trainer."""
    env: tuple[tuple[str, str], ...]
    """The program's environment variables; the flags of the TPU compiler are one of them."""
    secrets: tuple[Secret, ...]
    """Environment variables from Secret Manager, each with its project."""
    mounts: tuple[Mount, ...]
    """The mounted folders, with their placeholders filled in."""
    changes: tuple[str, ...]
    """The values of the command line that replace those of the spec, as `PATH=VALUE`."""
    whole: "Job | None" = None
    """For a probe, the job of the whole run; None for a whole run."""

    @property
    def target(self) -> str:
        """The service that runs the job."""
        return self.environment.target

    @property
    def whole_run(self) -> "Job":
        """The job of the whole run: this one, unless it is a probe."""
        return self.whole or self

    @property
    def options(self) -> Mapping[str, Any]:
        """The spec's settings for this target."""
        return self.settings.targets.get(self.target, {})

    @property
    def capacity(self) -> Capacity:
        """The way in which the machines are obtained."""
        return self.settings.capacity

    @property
    def capacity_text(self) -> str:
        """The capacity in words, with the name of its reservation if it has one."""
        name = capacity_name(self.target, self.settings)
        return f"{name} {self.capacity.reservation}" if self.capacity.reservation else name

    @property
    def restarts(self) -> int | None:
        """Restarts of the program after a failure; None leaves the service's own rule."""
        return self.settings.trainer.restarts

    @property
    def exit_codes(self) -> tuple[int, ...]:
        """The exit codes of failures that are worth a restart, in ascending order; empty if all of them are."""
        rule = self.settings.trainer.exit_codes
        return rule.codes if rule else ()

    @property
    def max_run_duration(self) -> Duration | None:
        """The longest run; None if nothing bounds it."""
        return self.settings.trainer.max_run_duration

    @property
    def slice(self) -> Slice:
        """The slice that the job runs on."""
        return self.rung.slice

    @property
    def run_dir(self) -> str:
        """The folder of the run, which a probe does not share."""
        return (
            self.job_dir
            if self.whole
            else _run_dir(self.bucket, self.project, self.run or self.name)
        )

    @property
    def size(self) -> str:
        """The accelerator type, such as `v3-32`."""
        return self.rung.slice.size


def _run_dir(bucket: str, project: str, run: str) -> str:
    return f"gs://{bucket}/runs/{project}/{run}"


def capacity_name(target: str, settings: Settings) -> str:
    """Return the kind of capacity in words: for a spec that sets none, those of the target or of its compute class."""
    if settings.capacity.is_set:
        return settings.capacity.kind
    if compute_class(target, settings):
        return "the compute class decides"
    return TARGET_FACTS[target].unset_capacity


def compute_class(target: str, settings: Settings) -> str | None:
    """Return the compute class of GKE that decides how nodes are bought; None if there is none."""
    return settings.targets.get("gke", {}).get("compute_class") if target == "gke" else None


def make_job(
    project: Project,
    environment: Environment,
    rung: Rung,
    run: str | None,
    whole: Job | None = None,
) -> Job:
    """Build the job of a rung in an environment.

    Args:
        project: The project; with the arguments of probes for one of them.
        environment: The environment.
        rung: The rung with its figures.
        run: The id of a run, which the job's name and folder end with.
        whole: For a probe, the job of the whole run.
    """
    kind = PROBE if whole else None
    settings = project.settings[environment.name, rung.size]
    rung = rung._replace(slice=slice_in_force(project, environment.target, rung.slice))
    trainer = settings.trainer
    bucket = bucket_of(project, environment)
    job_dir = "/".join(
        part for part in (f"gs://{bucket}/jobs", project.name, rung.size, kind, run) if part
    )
    name = job_name(
        name=project.name, environment=environment.name, size=rung.size, run=run, kind=kind
    )
    run_dir = job_dir if whole else _run_dir(bucket, project.name, run or name)
    run_root, _, run_folder = run_dir.rpartition("/")
    folders = {"job_dir": job_dir, "run_dir": run_dir, "run": run or name}
    # Only presets use these: a framework may build the folder of a run from two parts.
    folders |= {"run_root": run_root, "run_folder": run_folder}
    run_steps = (whole.rung if whole else rung).train_steps
    folders["run_steps"] = str(run_steps or "")
    figures = figure_texts(rung)
    values = placeholder_values(project, environment, rung, figures) | folders
    of_figures = ((flag, text) for _, flag, text in figure_flags(project.training, rung, figures))
    flags = (*own_flags(trainer, values), *of_figures)
    return Job(
        project=project.name,
        environment=environment,
        rung=rung,
        settings=settings,
        run=run,
        name=name,
        bucket=bucket,
        job_dir=job_dir,
        zone=zone_of(environment, rung.slice),
        account=account_email(
            project=environment.project, name=project.name, environment=environment.name
        ),
        image=_filled(trainer.image, values),
        worker_image=_filled(trainer.worker_image, values),
        package=_filled(trainer.package, values),
        module=trainer.module,
        runtime=trainer.runtime,
        python=trainer.python,
        command=tuple(fill_placeholders(word, values) for word in trainer.command),
        flags=flags,
        args=tuple(chain.from_iterable(written_flag(trainer.arg_style, *flag) for flag in flags)),
        env=tuple(_environment_variables(trainer, rung.slice, values)),
        secrets=tuple(
            secret._replace(project=secret.project or environment.project)
            for secret in trainer.secrets
        ),
        mounts=tuple(
            mount._replace(source=fill_placeholders(mount.source, values).rstrip("/"))
            for mount in trainer.mounts
        ),
        changes=tuple(change.argument for change in project.document.changes),
        whole=whole,
    )


def path_values(project: Project, environment: Environment, size: str) -> dict[str, str]:
    """Return the values of the placeholders that name a place in a bucket; none depends on the figures of a rung."""
    return {
        "project": environment.project,
        "name": project.name,
        "env": environment.name,
        "region": environment.region,
        "bucket": f"gs://{bucket_of(project, environment)}",
        "size": size,
    }


def placeholder_values(
    project: Project, environment: Environment, rung: Rung, figures: Mapping[str, str]
) -> dict[str, str]:
    """Return the values of all placeholders but the folders, which depend on the run.

    A value that the rung does not have is empty, and an error where the placeholder is used (TPU113).
    """
    return {
        **dict.fromkeys(("train_steps", "epochs", "learning_rate", "sequence_length"), ""),
        **figures,
        **{f"steps.{key}": figures[key] for key in project.training.steps},
        **path_values(project, environment, rung.size),
        "cores": str(rung.slice.cores),
        "hosts": str(rung.slice.hosts),
        "chips": str(rung.slice.chips),
        "slices": str(rung.slice.slices),
        "topology": rung.slice.topology or "",
        "data_parallel": str(rung.data_parallel),
    }


def _filled(text: str | None, values: Mapping[str, str]) -> str | None:
    return fill_placeholders(text, values) if text else None


def _environment_variables(
    trainer: Trainer, slice_: Slice, values: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the program's variables, then the compiler's flags for the generation."""
    for key, text in trainer.env:
        yield key, fill_placeholders(text, values)
    if flags := trainer.xla_flags.get(slice_.generation):
        yield XLA_FLAGS_VARIABLE, " ".join(flags)


def own_flags(trainer: Trainer, values: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Yield the flags of `args`; a text of a list has an empty name."""
    for arg in trainer.args:
        for value in arg.values:
            text = None if value is None else fill_placeholders(value, values)
            # A preset adds no argument without a value: a run counted in epochs has no steps.
            if text or arg.path != PRESET:
                yield arg.key, text


def written_flag(style: ArgStyle, flag: str, text: str | None) -> tuple[str, ...]:
    """Return the words of a flag in a style; a text without a flag stays as it is."""
    if not flag:
        return (text or "",)
    if text is None:
        return (f"--{flag}",)
    if style == "--key value":
        return (f"--{flag}", text)
    return (f"{flag}={text}" if style == "key=value" else f"--{flag}={text}",)


# Labels by which lists and the bill are read by spec, environment, size and run.
#
# The keys and values have at most 63 lower-case letters, digits and dashes, with a letter first in a key:
# https://cloud.google.com/resource-manager/docs/labels-overview#requirements. Values of Kubernetes also end with a
# letter or a digit: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set.


_MAX_VALUE_LENGTH: Final = 63


def environment_labels(name: str, environment: Environment, *rest: str) -> dict[str, str]:
    """Return the labels of what the stack creates for an environment: the spec, the environment, and its own labels.

    Args:
        name: The project's name in the spec.
        environment: The environment.
        rest: The values of the labels that only jobs have.
    """
    return {
        **dict(zip(RESERVED_LABELS, (name, environment.name, *rest), strict=False)),
        **environment.labels,
    }


def job_labels(job: Job) -> dict[str, str]:
    """Return the labels of a job: those of its environment, its size, and its run.

    A job that is not part of a named run is a run of its own, by the job's name; a probe is never part of a run.
    """
    run = f"{PROBE}-{job.run}" if job.whole and job.run else job.run or job.name
    return environment_labels(
        job.project, job.environment, job.size, run[:_MAX_VALUE_LENGTH].rstrip("-")
    )


# The program of a job, in the form in which records of different runs can be compared.


FlagValue = str | tuple[str | None, ...] | None
"""The text of a flag; None for a bare flag, several texts for a repeated one."""

_OF_ONE_RUN: Final = (
    "bucket",
    "job_dir",
    "run_dir",
    "run",
    "train_steps",
    "epochs",
    "learning_rate",
)
"""The placeholders of folders, steps and rate, which change no step: a program keeps them as they are written."""


class SpeedSettings(NamedTuple):
    """The settings that decide the speed of a rung's steps, beside its size."""

    image: str | None
    """The image, or the package."""
    command: tuple[str, ...]
    xla_flags: tuple[str, ...]
    flags: Mapping[str, FlagValue]
    """By name, without the arguments of probes and presets, and without the figures of steps and rate."""
    figures: Mapping[str, int]
    """The batch and its division among the devices."""


def program_of(project: Project, job: Job) -> SpeedSettings:
    """Return the program of a job; a probe has that of the whole run."""
    job = job.whole_run
    trainer, rung, training = job.settings.trainer, job.rung, project.training
    texts = figure_texts(rung)
    names = (*_OF_ONE_RUN, *(f"steps.{figure}" for figure in training.steps))
    values = placeholder_values(project, job.environment, rung, texts) | {
        name: f"${{{name}}}" for name in names
    }
    own = trainer._replace(args=tuple(arg for arg in trainer.args if arg.path != PRESET))
    of_figures = [
        (flag, text)
        for figure, flag, text in figure_flags(training, rung, texts)
        if figure not in (*_OF_ONE_RUN, *training.steps)
    ]
    words = trainer.command or (("python3", "-m", trainer.module) if trainer.module else ())
    return SpeedSettings(
        image=job.image or job.package,
        command=tuple(fill_placeholders(word, values) for word in words),
        xla_flags=tuple(dict(job.env).get(XLA_FLAGS_VARIABLE, "").split()),
        flags=flag_values((*own_flags(own, values), *of_figures)),
        figures=figures_of(rung),
    )


def figures_of(rung: Rung) -> dict[str, int]:
    """Return the figures of a rung's batch and of its division among the devices."""
    lengths = {"sequence_length": rung.sequence_length} if rung.sequence_length else {}
    return {
        "batch_size": rung.batch_size,
        "grad_accum": rung.grad_accum or 1,
        "model_parallel": rung.model_parallel,
        **lengths,
    }


def flag_values(flags: tuple[tuple[str, str | None], ...]) -> dict[str, FlagValue]:
    """Return flags and their texts by name, in order; a text of a list counts as the flag that it starts with."""
    values: dict[str, list[str | None]] = {}
    for flag, text in flags:
        name, value = flag, text
        if not flag:
            name, separator, value = (text or "").removeprefix("--").partition("=")
            value = value if separator else None
        values.setdefault(name, []).append(value)
    return {name: texts[0] if len(texts) == 1 else tuple(texts) for name, texts in values.items()}
