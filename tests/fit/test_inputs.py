"""The inputs of a compilation are those parts of a job that the step and the compiler see."""

from typing import Any

from spec_factory import planned, project, spec
from tpucfg.fit.inputs import FitInputs, fit_inputs

FIT = {"step": "trainer.fit:abstract_step"}


def inputs(data: dict[str, Any], **selection: Any) -> FitInputs | None:
    """Return the inputs of the last job of a spec."""
    return fit_inputs(project(data), planned(data, **selection).jobs[-1])


def test_a_spec_without_a_step_has_no_inputs() -> None:
    """A job whose spec names no step cannot be compiled."""
    assert inputs(spec()) is None


def test_inputs_are_the_flags_of_the_rung_and_the_variables() -> None:
    """The flags are those of the config; the compiler's flags are apart from the other variables."""
    data = spec(
        trainer__fit=FIT,
        trainer__args={"data_dir": "${bucket}/data", "verbose": None, "layer": ["a", "b"]},
        trainer__env={"B": "2", "A": "${size}"},
        trainer__xla_flags={"v2": ["--xla_a=true", "--xla_b=1"], "v3": ["--xla_c=1"]},
    )
    assert inputs(data) == FitInputs(
        step="trainer.fit:abstract_step",
        flags={
            "data_dir": "gs://my-project-dev-mnist-dev-us-central1/data",
            "verbose": None,
            "layer": ("a", "b"),
            "batch_size": "4096",
            "train_steps": "1000",
            "learning_rate": "0.4",
        },
        env={"A": "v2-32", "B": "2"},
        xla_flags=("--xla_a=true", "--xla_b=1"),
        topology="4x4",
        chips_per_host=4,
    )


def test_the_id_of_a_run_changes_no_input() -> None:
    """Another output folder makes no other program."""
    data = spec(trainer__fit=FIT, trainer__args={"model_dir": "${job_dir}"})
    assert inputs(data, run="a1") == inputs(data)


def test_a_flag_keeps_an_equals_sign_in_its_value() -> None:
    """Only the first equals sign separates a flag's name from its value, in an entry of a list too."""
    named = inputs(spec(trainer__fit=FIT, trainer__args={"mesh": "data=4,model=2", "empty": ""}))
    assert named
    flags = named.flags
    assert (flags["mesh"], flags["empty"]) == ("data=4,model=2", "")
    listed = inputs(
        spec(trainer__fit=FIT, trainer__args=["--mesh=data=4,model=2", "--empty=", "base.yml"])
    )
    assert listed
    flags = listed.flags
    assert (flags["mesh"], flags["empty"], flags["base.yml"]) == ("data=4,model=2", "", None)
