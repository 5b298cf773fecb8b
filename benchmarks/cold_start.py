"""Cold start of single commands: whole processes, from start to end."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.environments import ROOT
from benchmarks.timing import Cost, fastest

BARE: Final = "python -c pass"


class Goal(NamedTuple):
    """Limit for the ratio of two commands' times."""

    command: str
    reference: str
    max_ratio: float


CHECK_IMPORTS: Final = 'python -c "import typer, yaml, jsonschema_rs"'
RENDER_IMPORTS: Final = 'python -c "import typer, jinja2, yaml, jsonschema_rs"'
"""The packages that a command imports: a lower bound for its time."""
CHECKOUT: Final = (
    "import sys; sys.path.insert(0, 'compiler'); from tpucfg.__main__ import main; main()"
)
"""Runs the command of this checkout, with the bytecode of an earlier run, and with templates and catalog as sources."""
GOALS: Final = (
    Goal("tpucfg --version", 'python -c "import typer"', 1.3),
    Goal("tpucfg check", CHECK_IMPORTS, 1.2),
    Goal("tpucfg check", "check-jsonschema", 0.5),
    Goal("tpucfg render --size v3-32", RENDER_IMPORTS, 1.1),
    Goal("checkout check", "tpucfg check", 1.5),
    Goal("checkout render --size v3-32", "tpucfg render --size v3-32", 1.5),
)
OTHER_COMMANDS: Final = (
    "tpucfg ladder",
    "tpucfg sizes --target gke",
    "tpucfg why learning_rate --env prod --size v3-32",
    "tpucfg submit --env prod --size v3-32",
    "tpucfg schema",
)


def measure(tpucfg: Path, check_jsonschema: Path, rounds: int) -> dict[str, Cost]:
    """Return the cost of each command line on the example project."""
    return fastest(dict(_commands(tpucfg, check_jsonschema)), ROOT, rounds)


def _commands(tpucfg: Path, check_jsonschema: Path) -> Iterator[tuple[str, Sequence[str]]]:
    python = str(tpucfg / "python")
    yield BARE, (python, "-c", "pass")
    for imports in ('python -c "import typer"', CHECK_IMPORTS, RENDER_IMPORTS):
        yield imports, (python, "-c", imports.split('"')[1])
    file_and_schema = ("--schemafile", "schema/tpucfg.schema.json", "tpucfg.yaml")
    yield "check-jsonschema", (str(check_jsonschema / "check-jsonschema"), *file_and_schema)
    for command in dict.fromkeys([*(goal.command for goal in GOALS), *OTHER_COMMANDS]):
        program, *arguments = command.split()
        start = (python, "-c", CHECKOUT) if program == "checkout" else (str(tpucfg / program),)
        yield command, (*start, *arguments)


def missed(costs: Mapping[str, Cost]) -> list[Goal]:
    """Return the goals that these costs miss."""
    return [goal for goal in GOALS if _ratio(costs, goal) > goal.max_ratio]


def _ratio(costs: Mapping[str, Cost], goal: Goal) -> float:
    return costs[goal.command].seconds / costs[goal.reference].seconds


def report(costs: Mapping[str, Cost]) -> Iterator[str]:
    """Yield the results as lines of Markdown."""
    yield "| command | ms | against | ms | ratio | goal |"
    yield "|---|---:|---|---:|---:|---:|"
    for goal in GOALS:
        left, right = costs[goal.command].seconds * 1000, costs[goal.reference].seconds * 1000
        ratio = _ratio(costs, goal)
        shown = f"{ratio:.2f}" if ratio <= goal.max_ratio else f"**{ratio:.2f}**"
        yield f"| `{goal.command}` | {left:.0f} | `{goal.reference}` | {right:.0f} | {shown} | {goal.max_ratio:g} |"
    yield ""
    imports, bare = costs[RENDER_IMPORTS].seconds, costs[BARE].seconds
    yield f"The packages that a render needs take {imports / bare:.1f} × `{BARE}`, which takes {bare * 1000:.0f} ms."
    yield "`checkout` runs the sources beside this page, with the bytecode that Python has kept of them."
    yield ""
    yield "| other commands | ms | ratio to `python -c pass` | peak memory, MB |"
    yield "|---|---:|---:|---:|"
    for command in OTHER_COMMANDS:
        cost = costs[command]
        ratio = cost.seconds / costs[BARE].seconds
        yield f"| `{command}` | {cost.seconds * 1000:.0f} | {ratio:.1f} | {cost.peak_bytes / 1e6:.0f} |"
