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


GOALS: Final = (
    Goal("tpucfg --version", 'python -c "import typer"', 1.3),
    Goal("tpucfg check", BARE, 10),
    Goal("tpucfg check", "check-jsonschema", 0.5),
    Goal("tpucfg render --size v3-32", 'python -c "import typer, jinja2"', 1.5),
    Goal("tpucfg render --size v3-32", BARE, 10),
)
RENDER_IMPORTS: Final = "typer, jinja2, yaml, jsonschema_rs"
"""The packages that a render imports: a lower bound for its time."""
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
    for modules in ("typer", "typer, jinja2", RENDER_IMPORTS):
        yield f'python -c "import {modules}"', (python, "-c", f"import {modules}")
    file_and_schema = ("--schemafile", "schema/tpucfg.schema.json", "tpucfg.yaml")
    yield "check-jsonschema", (str(check_jsonschema / "check-jsonschema"), *file_and_schema)
    for command in dict.fromkeys([*(goal.command for goal in GOALS), *OTHER_COMMANDS]):
        program, *arguments = command.split()
        yield command, (str(tpucfg / program), *arguments)


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
    imports = costs[f'python -c "import {RENDER_IMPORTS}"'].seconds
    yield f"`import {RENDER_IMPORTS}`, the packages that a render needs, takes {imports * 1000:.0f} ms by itself:"
    yield f"{imports / costs[BARE].seconds:.1f} × `{BARE}`."
    yield ""
    yield "| other commands | ms | ratio to `python -c pass` | peak memory, MB |"
    yield "|---|---:|---:|---:|"
    for command in OTHER_COMMANDS:
        cost = costs[command]
        ratio = cost.seconds / costs[BARE].seconds
        yield f"| `{command}` | {cost.seconds * 1000:.0f} | {ratio:.1f} | {cost.peak_bytes / 1e6:.0f} |"
