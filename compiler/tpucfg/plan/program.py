"""The program of a job, in the form in which records of different runs can be compared."""

from collections.abc import Mapping
from typing import Final

from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.job import XLA_FLAGS_VARIABLE, Job, own_flags, placeholder_values
from tpucfg.plan.rung import Rung, figure_flags, figure_texts
from tpucfg.spec import PRESET, Project
from tpucfg.spec.placeholders import fill_placeholders

FlagValue = str | tuple[str | None, ...] | None
"""The text of a flag; None for a bare flag, several texts for a repeated one."""

_OF_ONE_RUN: Final = ("bucket", "job_dir", "run_dir", "run", "train_steps", "epochs", "learning_rate")
"""The placeholders of folders, steps and rate, which change no step: a program keeps them as they are written."""


class Program(NamedTuple):
    """The settings that decide the speed of a rung's steps, beside its size."""

    image: str | None
    """The image, or the package."""
    command: tuple[str, ...]
    xla_flags: tuple[str, ...]
    flags: Mapping[str, FlagValue]
    """By name, without the arguments of probes and presets, and without the figures of steps and rate."""
    figures: Mapping[str, int]
    """The batch and its division among the devices."""


def program_of(project: Project, job: Job) -> Program:
    """Return the program of a job; a probe has that of the whole run."""
    job = job.whole_run
    trainer, rung, training = job.settings.trainer, job.rung, project.training
    texts = figure_texts(rung)
    names = (*_OF_ONE_RUN, *(f"steps.{figure}" for figure in training.steps))
    values = placeholder_values(project, job.environment, rung, texts) | {name: f"${{{name}}}" for name in names}
    own = trainer._replace(args=tuple(arg for arg in trainer.args if arg.path != PRESET))
    of_figures = [
        (flag, text)
        for figure, flag, text in figure_flags(training, rung, texts)
        if figure not in (*_OF_ONE_RUN, *training.steps)
    ]
    words = trainer.command or (("python3", "-m", trainer.module) if trainer.module else ())
    return Program(
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
