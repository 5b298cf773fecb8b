"""Options that several commands share."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tpucfg.plan import RunPart, Selection
from tpucfg.refusal import UsageError
from tpucfg.spec import SPEC_NAME
from tpucfg.targets import TARGETS
from tpucfg.text_format import format_value, suggestion
from tpucfg.yamldoc import Assignment

SPEC: Final = Path(SPEC_NAME)
"""The default of --spec."""
DEFAULT_TIME_LIMIT: Final = "15m"
"""The default of --time-limit: six times the longest compilation that was measured on two cores, 148 seconds."""
_MAX_RUN_ID_LENGTH: Final = 20
_PROBE: Final = "probe"
_STEP: Final = "[1-9][0-9]{0,11}"


# Shell completion. Completions cannot report errors, so they use the readable parts of the spec.


def _complete_environment(ctx: typer.Context, incomplete: str) -> list[str]:
    return [name for name in _ladders(ctx) if name.startswith(incomplete)]


def _complete_size(ctx: typer.Context, incomplete: str) -> list[str]:
    sizes = dict.fromkeys(size for ladder in _ladders(ctx).values() for size in ladder)
    return [size for size in sizes if size.startswith(incomplete)]


def _ladders(ctx: typer.Context) -> dict[str, tuple[str, ...]]:
    """Return the sizes of each environment of the spec on the command line; none if it cannot be read."""
    from tpucfg.spec.parse import parse_project
    from tpucfg.yamldoc.reader import read_file

    spec = ctx.params.get("spec") or SPEC
    project = parse_project(
        read_file(Path(spec[0] if isinstance(spec, list | tuple) else spec))
    ).project
    if project is None or "environments" in project.broken:
        return {}
    has_sizes = "sizes" not in project.broken
    return {
        name: environment.sizes if has_sizes else ()
        for name, environment in project.environments.items()
    }


# Values of options.


def _run_id(value: str | None) -> str | None:
    if value is None:
        return None
    is_plain = value.isascii() and value.replace("-", "").isalnum() and value == value.lower()
    if not is_plain or not 1 <= len(value.strip("-")) == len(value) <= _MAX_RUN_ID_LENGTH:
        raise typer.BadParameter(
            f"a run id has 1 to {_MAX_RUN_ID_LENGTH} lower-case letters, digits and inner dashes"
        )
    if value == _PROBE or value.startswith(f"{_PROBE}-"):
        raise typer.BadParameter(
            "probe is a part of the names and folders of probes; choose another id"
        )
    return value


def _run_ids(values: list[str] | None) -> list[str]:
    return [value for value in map(_run_id, values or ()) if value]


def environment_name_form() -> Mapping[str, Any]:
    """Return the schema of the name of an environment, with its pattern and the sentence about it."""
    from tpucfg.schemas import load_schema

    form: Mapping[str, Any] = load_schema("tpucfg")["properties"]["environments"]["propertyNames"]
    return form


def output_folder(text: str) -> Path:
    """Return the path of an output folder.

    Raises:
        UsageError: The path is empty, for example because of an unset shell variable.
    """
    if not text:
        raise UsageError("--out is empty", "give a folder, or . for the current one")
    return Path(text)


def selection(
    env: list[str] | None = None,
    size: list[str] | None = None,
    target: str | None = None,
    run: str | None = None,
    *,
    probe: bool = False,
    step: list[str] | None = None,
    changes: list[str] | None = None,
) -> Selection:
    """Return the selection that the options describe.

    Raises:
        UsageError: A step or a value to change is malformed, or no run has the step.
    """
    require_run(step, run, probe=probe)
    done = tuple(map(_run_part, step or ()))
    return Selection(
        tuple(env or ()),
        tuple(size or ()),
        target,
        run,
        probe,
        done,
        tuple(map(_change, changes or ())),
    )


def require_run(step: object, run: str | None, *, probe: bool) -> None:
    """Raise UsageError for --step without a run that has it."""
    if step and (run is None or probe):
        needed = (
            "needs --run, the run that has the step"
            if run is None
            else "and --probe exclude each other"
        )
        raise UsageError(f"--step {needed}")


def _change(argument: str) -> Assignment:
    from tpucfg.yamldoc.edits import parse_change

    change = parse_change(argument)
    if change is None or not argument.isprintable():
        path = format_value(argument.partition("=")[0], quoted=False)
        example = "write PATH=VALUE, for example --set training.learning_rate=2e-4"
        raise UsageError(f"--set {path} is not a path of the spec and a value", example)
    return change


def _run_part(text: str) -> RunPart:
    size, _, count = text.rpartition(":")
    if not re.fullmatch(_STEP, count):
        example = "--step 4000, or --step v6e-64:4000 with the size of the steps before it"
        raise UsageError(f"--step cannot be {format_value(text, quoted=False)}", f"write {example}")
    return RunPart(size, int(count))


# Option types.


def option(form: str, help: str, **settings: Any) -> Any:
    """Return an option in the form of the help, such as `--out DIR`; a switch has no second word.

    Args:
        form: The name, and what the help shows for a value.
        help: The help text.
        settings: Further arguments of `typer.Option`.
    """
    name, _, metavar = form.partition(" ")
    return typer.Option(name, metavar=metavar or None, help=help, **settings)


def argument(form: str, help: str, **settings: Any) -> Any:
    """Return an argument; one that can be left out has brackets, and its default in the help text."""
    return typer.Argument(metavar=form, help=help, show_default=False, **settings)


def choice_option(form: str, values: Sequence[str], help: str) -> Any:
    """Return an option that takes one of some values, or several of them if its type is a list.

    Args:
        form: The name, and what the help shows for a value.
        values: The values, which the shell completes.
        help: The help text.
    """
    name = form.partition(" ")[0]

    def check(given: str | Sequence[str] | None) -> str | Sequence[str] | None:
        for value in [given] if isinstance(given, str) else given or ():
            if value not in values:
                hint = suggestion(value, values, f"give one of: {', '.join(values)}")
                raise UsageError(f"{name} cannot be {format_value(value, quoted=False)}", hint)
        return given

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return option(form, help, callback=check, autocompletion=complete)


def format_option(names: str, help: str = "The output format.") -> Any:
    """Return the option --format.

    Args:
        names: The allowed values, separated by `|`.
        help: The help text.
    """
    return choice_option(f"--format {names}", names.split("|"), help)


def _env_option(help: str) -> Any:
    return option("--env ENV", help, autocompletion=_complete_environment)


def _size_option(help: str) -> Any:
    return option("--size SIZE", help, autocompletion=_complete_size)


def _target_option(help: str) -> Any:
    return choice_option("--target TARGET", tuple(TARGETS), help)


SpecOption = Annotated[Path, option("--spec FILE", "The spec.")]
SpecsOption = Annotated[
    list[Path] | None, option("--spec FILE", "A spec; repeatable. [default: tpucfg.yaml]")
]
EnvOption = Annotated[list[str] | None, _env_option("An environment; repeatable. [default: all]")]
OneEnvOption = Annotated[
    str | None, _env_option("The environment; optional if only one has the size.")
]
SizeOption = Annotated[list[str] | None, _size_option("A size; repeatable. [default: all]")]
RungOption = Annotated[str | None, _size_option("The rung. [default: the tuned size]")]
OneSizeOption = Annotated[str, _size_option("The size.")]
TargetOption = Annotated[str | None, _target_option("The target. [default: the spec's]")]
TwoTargetsOption = Annotated[
    list[str] | None,
    _target_option("The target; given twice, both are compared. [default: the spec's]"),
]
TakenByOption = Annotated[str | None, _target_option("Show only sizes that this target supports.")]
NewTargetOption = Annotated[
    str | None, _target_option("The service that runs the jobs. [default: gke]")
]
RunOption = Annotated[
    str | None, option("--run ID", "The run id, a part of names and folders.", callback=_run_id)
]
RunsOption = Annotated[
    list[str] | None,
    option("--run ID", "The run id, a part of names and folders; repeatable.", callback=_run_ids),
]
StepOption = Annotated[
    list[str] | None,
    option(
        "--step [SIZE:]STEP",
        "The run's step, and its size; repeatable in order. [default: as recorded]",
    ),
]
SetOption = Annotated[
    list[str] | None, option("--set PATH=VALUE", "A value in place of the spec's; repeatable.")
]
JobsOption = Annotated[
    int | None, option("--jobs N", "Compilations at once. [default: by cores and memory]", min=1)
]
TimeLimitOption = Annotated[
    str, option("--time-limit TIME", "The longest compilation: 90s, 15m, 1h.")
]
ProbeOption = Annotated[
    bool, option("--probe", "Take the probe of each rung, as the spec's `probe` describes it.")
]
