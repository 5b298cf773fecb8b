"""Comparison of tpucfg with a typical script and with other tools on the PATH, for equal configs.

The other tools read precomputed values of every variant; tpucfg reads specs and computes the values itself.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.environments import ROOT
from benchmarks.throughput import MEMORY_FOLDER, SIZES, write_specs
from benchmarks.timing import Cost, run

COUNTS: Final = (10, 100, 1_000, 5_000)
"""Numbers of configs."""
_MAX_SECONDS: Final = 5.0
"""A tool that takes longer is not measured with more configs."""
_HERE: Final = Path(__file__).parent / "peers"
_SCHEMA: Final = str(ROOT / "schema" / "vertex-ai.schema.json")

Command = Callable[[str, int], Sequence[str]]


class Tool(NamedTuple):
    """One tool that generates the configs."""

    name: str
    output: str
    """Files, or one text on stdout."""
    validation: str
    """The checks of the tool."""
    command: Command
    """Returns the command for a program and a number of configs; runs beside `variants.json` and the specs."""


def _render(program: str, count: int) -> Sequence[str]:
    specs = (
        argument
        for number in range(count // len(SIZES))
        for argument in ("--spec", f"{number}.yaml")
    )
    return (program, "render", *specs)


_FULL_VALIDATION: Final = (
    "each spec; each config, parsed again, by the API's schema and the service's rules"
)

TOOLS: Final = (
    Tool(
        "tpucfg",
        "files",
        _FULL_VALIDATION,
        lambda program, count: (*_render(program, count), "--out", "out"),
    ),
    Tool("tpucfg (printed)", "a text", _FULL_VALIDATION, _render),
    Tool(
        "script",
        "files",
        "each config, parsed again, by the API's schema",
        lambda program, _: (
            program,
            str(_HERE / "script" / "render.py"),
            "variants.json",
            _SCHEMA,
            "out",
        ),
    ),
    Tool(
        "cue",
        "a text",
        "each config, by a schema for CUE",
        lambda program, _: (
            program,
            "export",
            str(_HERE / "cue" / "configs.cue"),
            "variants.json",
            "-e",
            "configs",
        ),
    ),
    Tool(
        "helm",
        "a text",
        "only the values, by a schema",
        lambda program, _: (
            program,
            "template",
            "configs",
            str(_HERE / "helm"),
            "-f",
            "variants.json",
        ),
    ),
    Tool(
        "jsonnet",
        "files",
        "nothing",
        lambda program, _: (
            program,
            "-J",
            ".",
            "-m",
            "out",
            "-c",
            str(_HERE / "jsonnet" / "configs.jsonnet"),
        ),
    ),
)


def measure(tpucfg: Path, rounds: int) -> dict[str, dict[int, Cost]]:
    """Return the fastest of `rounds` runs of each installed tool, by name and number of configs."""
    own = str(tpucfg / "tpucfg")
    programs = {"tpucfg": own, "tpucfg (printed)": own, "script": str(tpucfg / "python")}
    installed = [(tool, programs.get(tool.name) or shutil.which(tool.name)) for tool in TOOLS]
    costs: dict[str, dict[int, Cost]] = {tool.name: {} for tool, program in installed if program}
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        workdir = Path(folder)
        list(write_specs(workdir))
        for count in COUNTS:
            (workdir / "variants.json").write_text(
                json.dumps({"variants": list(variants(count))}), encoding="utf-8"
            )
            for tool, program in installed:
                if (
                    program
                    and max((cost.seconds for cost in costs[tool.name].values()), default=0)
                    < _MAX_SECONDS
                ):
                    command = tool.command(program, count)
                    costs[tool.name][count] = min(_run(command, workdir) for _ in range(rounds))
    return costs


def _run(command: Sequence[str], workdir: Path) -> Cost:
    shutil.rmtree(workdir / "out", ignore_errors=True)
    return run(command, workdir)


def variants(count: int) -> Iterator[Mapping[str, object]]:
    """Yield the values of `count` configs."""
    for number in range(count):
        yield {
            "name": f"m-{number}",
            "cores": 8,
            "hosts": 1,
            "batch": 1024 + number,
            "steps": 1000 + number,
            "rate": "0.1",  # as text: jsonnet writes the number as 0.10000000000000001
            "warmup": 50,
            "checkpoints": 125,
        }


def missed(costs: Mapping[str, Mapping[int, Cost]]) -> list[str]:
    """Return the missed goals: be faster than the script, which writes files too, and than CUE, which prints."""
    seconds = {
        name: cost[max(COUNTS)].seconds for name, cost in costs.items() if max(COUNTS) in cost
    }
    pairs = (("tpucfg", "script"), ("tpucfg (printed)", "cue"))
    return [
        f"faster than {other}"
        for own, other in pairs
        if other in seconds and seconds[own] >= seconds[other]
    ]


def report(costs: Mapping[str, Mapping[int, Cost]]) -> Iterator[str]:
    """Yield the results as lines of Markdown."""
    counts = " | ".join(f"{count:,}" for count in COUNTS)
    yield f"| seconds by number of configs | {counts} | ms per additional config | MB | output | validation |"
    yield f"|---|{'---:|' * len(COUNTS)}---:|---:|---|---|"
    tools = {tool.name: tool for tool in TOOLS}
    for name, costs_by_count in costs.items():
        seconds = " | ".join(
            f"{costs_by_count[count].seconds:.2f}" if count in costs_by_count else "–"
            for count in COUNTS
        )
        peak = max(cost.peak_bytes for cost in costs_by_count.values()) / 1e6
        description = f"{tools[name].output} | {tools[name].validation}"
        yield f"| {name} | {seconds} | {_seconds_per_config(costs_by_count) * 1000:.2f} | {peak:.0f} | {description} |"
    missing = [tool.name for tool in TOOLS if tool.name not in costs]
    if missing:
        yield ""
        yield f"Not measured, as they are not on the PATH: {', '.join(missing)}."


def _seconds_per_config(costs_by_count: Mapping[int, Cost]) -> float:
    """Return the seconds per additional config between the two largest numbers, without start-up."""
    *_, smaller, larger = sorted(costs_by_count)
    return (costs_by_count[larger].seconds - costs_by_count[smaller].seconds) / (larger - smaller)
