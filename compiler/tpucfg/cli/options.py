"""Options that several commands share, so that they read the same everywhere."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tpucfg.cli.exit_codes import USAGE, CommandExit
from tpucfg.plan import Selection
from tpucfg.targets import TARGETS
from tpucfg.text_format import format_value, nearest

SPEC: Final = Path("tpucfg.yaml")


def _complete_environment(ctx: typer.Context, incomplete: str) -> list[str]:
    return [name for name in _ladders(ctx) if name.startswith(incomplete)]


def _complete_size(ctx: typer.Context, incomplete: str) -> list[str]:
    sizes = dict.fromkeys(size for ladder in _ladders(ctx).values() for size in ladder)
    return [size for size in sizes if size.startswith(incomplete)]


def _ladders(ctx: typer.Context) -> dict[str, tuple[str, ...]]:
    """By environment, as far as the spec can be read: a completion never fails."""
    from tpucfg.spec.parse import parse_project
    from tpucfg.yamldoc.reader import read_file

    given = ctx.params.get("spec") or SPEC
    project = parse_project(read_file(Path(given[0] if isinstance(given, list | tuple) else given))).project
    if project is None or "environments" in project.broken:
        return {}
    sizes_hold = "sizes" not in project.broken
    return {name: it.sizes if sizes_hold else () for name, it in project.environments.items()}


def _complete_target(incomplete: str) -> list[str]:
    return [name for name in TARGETS if name.startswith(incomplete)]


def _run_id(value: str | None) -> str | None:
    plain = value is None or (value.isascii() and value.replace("-", "").isalnum() and value == value.lower())
    if not plain or (value is not None and not 1 <= len(value.strip("-")) == len(value) <= 20):  # noqa: PLR2004 - said below
        raise typer.BadParameter("a run's id is 1 to 20 lower-case letters, digits and inner dashes")
    return value


def _target(value: str | None) -> str | None:
    if value is not None and value not in TARGETS:
        raise CommandExit(USAGE, f"{format_value(value, quoted=False)} is no target", _meant(value, tuple(TARGETS)))
    return value


def _target_option(said: str) -> Any:
    return typer.Option(
        "--target", metavar="TARGET", help=said, callback=_target, autocompletion=_complete_target, show_default=False
    )


SpecOption = Annotated[Path, typer.Option("--spec", metavar="FILE", help="The spec.")]
SpecsOption = Annotated[
    list[Path] | None,
    typer.Option("--spec", metavar="FILE", help="A spec; may be repeated. [default: tpucfg.yaml]", show_default=False),
]
EnvOption = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="ENV", help="An environment; may be repeated.", autocompletion=_complete_environment),
]
SizeOption = Annotated[
    list[str] | None,
    typer.Option("--size", metavar="SIZE", help="A size; may be repeated.", autocompletion=_complete_size),
]
OneEnvOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="ENV",
        help="The environment; may be left out where only one has the size.",
        autocompletion=_complete_environment,
    ),
]
OneSizeOption = Annotated[str, typer.Option("--size", metavar="SIZE", help="The size.", autocompletion=_complete_size)]
TargetOption = Annotated[str | None, _target_option("Another target than the spec names.")]
TakenByOption = Annotated[str | None, _target_option("Only sizes that this target takes.")]
NewTargetOption = Annotated[str | None, _target_option("The service that runs the jobs. [default: vertex-ai]")]
RunOption = Annotated[
    str | None, typer.Option("--run", metavar="ID", help="The run's id, part of names and folders.", callback=_run_id)
]


def format_option(names: str, help: str = "How to print.") -> Any:
    """The option --format, which takes one of the names; they are separated as its metavar shows them."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names.split("|") if name.startswith(incomplete)]

    return typer.Option("--format", metavar=names, help=help, autocompletion=complete)


def output_folder(text: str) -> Path:
    """The folder of that name.

    Raises:
        Stop: It has none, as where a shell's variable is empty: the current folder is a point.
    """
    if not text:
        raise CommandExit(USAGE, "--out is empty, and names no folder", "give a folder, or . for the current one")
    return Path(text)


def selection(
    env: list[str] | None = None, size: list[str] | None = None, target: str | None = None, run: str | None = None
) -> Selection:
    """What the options select."""
    return Selection(tuple(env or ()), tuple(size or ()), target, run)


def _meant(value: str, allowed: tuple[str, ...]) -> str:
    near = nearest(value, allowed)
    return f"did you mean {near}?" if near else f"give one of: {', '.join(allowed)}"


def require_choice(value: str, allowed: tuple[str, ...], option: str) -> str:
    """The value, if it is one of those allowed.

    Raises:
        Stop: It is not.
    """
    if value not in allowed:
        raise CommandExit(
            USAGE,
            f"{option} {format_value(value, quoted=False)}: it takes {', '.join(allowed)}",
            _meant(value, allowed),
        )
    return value
