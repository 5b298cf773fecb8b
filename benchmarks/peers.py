"""The same configs from tpucfg, from the script that many a team has, and from whatever peers are on the PATH.

Each peer is given the figures of every variant, worked out; tpucfg gets specs and works them out itself.
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
"""Configs."""
_PATIENCE: Final = 5.0
"""Seconds: who takes longer is not asked for more configs."""
_HERE: Final = Path(__file__).parent / "peers"
_SCHEMA: Final = str(ROOT / "schema" / "vertex-ai.schema.json")

Command = Callable[[str, int], Sequence[str]]


class Tool(NamedTuple):
    """One way to make the configs."""

    name: str
    makes: str
    """Files, or one text on standard output."""
    checks: str
    """What it would refuse."""
    command: Command
    """From its program and the number of configs. It is run where `variants.json` and the specs are."""


def _render(program: str, count: int) -> Sequence[str]:
    specs = (word for number in range(count // len(SIZES)) for word in ("--spec", f"{number}.yaml"))
    return (program, "render", *specs)


_EVERYTHING: Final = "each spec; each config, read again, by the API's schema and the service's rules"

TOOLS: Final = (
    Tool("tpucfg", "files", _EVERYTHING, lambda program, count: (*_render(program, count), "--out", "out")),
    Tool("tpucfg (printed)", "a text", _EVERYTHING, _render),
    Tool(
        "script",
        "files",
        "each config, read again, by the API's schema",
        lambda program, _: (program, str(_HERE / "script" / "render.py"), "variants.json", _SCHEMA, "out"),
    ),
    Tool(
        "cue",
        "a text",
        "each config, by a schema of its own",
        lambda program, _: (program, "export", str(_HERE / "cue" / "configs.cue"), "variants.json", "-e", "configs"),
    ),
    Tool(
        "helm",
        "a text",
        "the values, by a schema; no config",
        lambda program, _: (program, "template", "configs", str(_HERE / "helm"), "-f", "variants.json"),
    ),
    Tool(
        "jsonnet",
        "files",
        "nothing",
        lambda program, _: (program, "-J", ".", "-m", "out", "-c", str(_HERE / "jsonnet" / "configs.jsonnet")),
    ),
)


def measure(tpucfg: Path, rounds: int) -> dict[str, dict[int, Cost]]:
    """The fastest of so many runs of each tool that is there, by its name and the number of configs."""
    own = str(tpucfg / "tpucfg")
    programs = {"tpucfg": own, "tpucfg (printed)": own, "script": str(tpucfg / "python")}
    found = [(tool, programs.get(tool.name) or shutil.which(tool.name)) for tool in TOOLS]
    costs: dict[str, dict[int, Cost]] = {tool.name: {} for tool, program in found if program}
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        here = Path(folder)
        list(write_specs(here))
        for count in COUNTS:
            (here / "variants.json").write_text(json.dumps({"variants": list(variants(count))}), encoding="utf-8")
            for tool, program in found:
                if program and max((cost.seconds for cost in costs[tool.name].values()), default=0) < _PATIENCE:
                    command = tool.command(program, count)
                    costs[tool.name][count] = min(_run(command, here) for _ in range(rounds))
    return costs


def _run(command: Sequence[str], here: Path) -> Cost:
    shutil.rmtree(here / "out", ignore_errors=True)
    return run(command, here)


def variants(count: int) -> Iterator[Mapping[str, object]]:
    """The figures of so many configs."""
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
    """The goals that these figures miss: to be sooner done than cue, which prints and checks by a schema, too."""
    sooner = costs["tpucfg (printed)"][max(COUNTS)].seconds < costs.get("cue", costs["script"])[max(COUNTS)].seconds
    return [] if sooner else ["sooner than cue"]


def report(costs: Mapping[str, Mapping[int, Cost]]) -> Iterator[str]:
    """The figures as Markdown."""
    counts = " | ".join(f"{count:,}" for count in COUNTS)
    yield f"| seconds for this number of configs | {counts} | ms per additional config | MB | output | checks |"
    yield f"|---|{'---:|' * len(COUNTS)}---:|---:|---|---|"
    tools = {tool.name: tool for tool in TOOLS}
    for name, taken in costs.items():
        seconds = " | ".join(f"{taken[count].seconds:.2f}" if count in taken else "–" for count in COUNTS)
        peak = max(cost.peak_bytes for cost in taken.values()) / 1e6
        words = f"{tools[name].makes} | {tools[name].checks}"
        yield f"| {name} | {seconds} | {_further(taken) * 1000:.2f} | {peak:.0f} | {words} |"
    missing = [tool.name for tool in TOOLS if tool.name not in costs]
    if missing:
        yield ""
        yield f"Not on the PATH, and so not measured: {', '.join(missing)}."


def _further(taken: Mapping[int, Cost]) -> float:
    """Seconds for each further config between the two largest numbers: what the start costs falls out."""
    *_, fewer, more = sorted(taken)
    return (taken[more].seconds - taken[fewer].seconds) / (more - fewer)
