"""Frameworks whose programs know the figures under names of their own: a preset of `training.flags` is one row."""

from collections.abc import Mapping
from typing import Final, Literal

from tpucfg.named_tuple import NamedTuple

ArgStyle = Literal["--key=value", "--key value", "key=value"]

FIGURES: Final = ("batch_size", "grad_accum", "train_steps", "epochs", "learning_rate")
"""The figures that are flags under their own names, unless `training.flags` has another; each key of
`training.steps` is one too."""
NAMED_FIGURES: Final = ("per_device_batch_size", "micro_batch", "sequence_length", "model_parallel")
"""The figures that are flags only where `training.flags` or a preset names the flag."""


class StepLine(NamedTuple):
    """The line that a framework's programs print after each step."""

    marker: str
    """A text that every such line has."""
    pattern: str
    """Finds the groups `step` and `seconds`, and in `values` the line's further metrics as `name: number`."""
    warm_up: int
    """The first steps of a log that are not measured, because they contain compilation or start a profile."""
    source: str
    """The public pages that show the line and the first steps that the framework itself leaves out."""
    tokens_per_second: str = ""
    """The metric that is the tokens per second of one device; empty if the line has none."""


class Preset(NamedTuple):
    """The command line of one framework's programs, and their training step."""

    step: str
    """The name of its own step, which `tpucfg fit` compiles where `trainer.fit` names no function."""
    arg_style: ArgStyle
    flags: Mapping[str, str | None]
    """The flag of each figure; None if the program does not know the figure."""
    meanings: Mapping[str, str]
    """Further names of arguments that mean a figure, each with the setting of `training` that decides it."""
    arguments: Mapping[str, str]
    """Arguments by figures that are no flags: where a spec sets the figure, its own arguments have the placeholder."""
    unknown_steps: Mapping[str, str]
    """Names of `training.steps` that other programs have and this one refuses, each with the edit."""
    variable_prefix: str
    """The start of environment variables that set an argument; empty if none do."""
    args: Mapping[str, str]
    """Arguments that it adds where the spec does not set them, with placeholders."""
    probe_args: Mapping[str, str]
    """Arguments that it adds to a probe in this way; `${run_steps}` are the steps of the whole run."""
    step_line: StepLine
    """The form of its log."""
    source: str
    """The public page that shows the names."""


PRESETS: Final[Mapping[str, Preset]] = {
    "maxtext": Preset(
        step="maxtext",
        arg_style="key=value",
        flags={
            "batch_size": None,
            "per_device_batch_size": "per_device_batch_size",
            "sequence_length": "max_target_length",
            "grad_accum": "gradient_accumulation_steps",
            "train_steps": "steps",
            "epochs": "num_epoch",
            "learning_rate": "learning_rate",
        },
        meanings={"global_batch_size": "batch_size"},
        arguments={"model_parallel": "ici_tensor_parallelism"},
        unknown_steps={
            "warmup_steps": "delete it, and set trainer.args.warmup_steps_fraction to its share of the steps",
            "save_checkpoints_steps": "did you mean checkpoint_period?",
        },
        variable_prefix="M_",
        # MaxText writes to <base_output_directory>/<run_name>. Without the second, each start has a folder of its own,
        # and a restart begins at step 0.
        args={"base_output_directory": "${run_root}", "run_name": "${run_folder}"},
        # A probe keeps nothing, and its rate follows the first steps of the whole run's schedule.
        probe_args={
            "enable_checkpointing": "false",
            "learning_rate_schedule_steps": "${run_steps}",
        },
        # While the batch ramps up, the line has no TFLOP/s, and the examples of its step are not those of the batch.
        step_line=StepLine(
            marker="completed step:",
            pattern=r"completed step: (?P<step>[0-9]{1,12}), seconds: (?P<seconds>[0-9]{1,9}\.[0-9]{1,9}),"
            r"(?: live slice count: [0-9]+,)? (?P<values>TFLOP/s/device: .*)",
            warm_up=10,
            source="https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/common/metric_logger.py,"
            " https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/benchmarks/upload_metrics_to_bq.py",
            tokens_per_second="Tokens/s/device",
        ),
        source="https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/configs/base.yml",
    )
}
