"""The figures of a spec read the same in `ladder`, in its charts and in a review."""

import json
import re
from html import unescape

import pytest

from repositories import Repository
from tpucfg.cli.app import run

pytestmark = pytest.mark.programs

SAME_COLUMNS = {
    "hosts": "hosts",
    "cores": "cores",
    "batch_size": "global batch",
    "train_steps": "steps",
    "examples": "examples",
    "learning_rate": "learning rate (sqrt rule)",
    "warmup_steps": "`warmup_steps`",
}
SAME_COSTS = {"chips": "chips", "USD/hour": "USD/hour", "hours": "hours", "USD": "USD/run"}


def tables(markdown: str) -> list[dict[str, dict[str, str]]]:
    """Return the cells of each table by the size in its first column, and by column."""
    parsed = []
    for block in re.findall(r"(?:^\|.*\n?)+", markdown, re.MULTILINE):
        header, _, *rows = (
            [cell.strip() for cell in line.strip("|").split(" | ")] for line in block.splitlines()
        )
        parsed.append(
            {
                re.split("[ ,]", row[0].strip("| "))[0]: dict(zip(header, row, strict=True))
                for row in rows
            }
        )
    return parsed


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the output of a command."""
    assert run([*arguments]) == 0
    return capsys.readouterr().out


def test_figures_are_equal_in_ladder_charts_and_review(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Batch, steps, rates that are small, exact or rounded, hours and dollars have one form everywhere."""
    repository.edit(
        ("learning_rate: 0.1", "learning_rate: 1e-5"),
        ("learning_rate_rule: linear", "learning_rate_rule: sqrt"),
        ("train_steps: 4000", "train_steps: 400000"),
        ("batch_size: 1024", "batch_size: 3064"),
        ("# prices: {v2: 1.5}", "prices: {v2: 1.35}"),
        ("v2-128]", "v2-128, v2-256]"),
    )
    for name in ("dev", "prod"):
        path = repository.folder / "results" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        record = {"metrics": {"examples_per_second": 1234.5678}, "name": "mnist", "size": "v2-32"}
        path.write_text(json.dumps(record) + "\n")
    repository.commit()
    repository.git("rm", "-q", "--cached", "tpucfg.yaml")
    repository.git("commit", "-q", "-m", "without the spec")

    (ladder,) = tables(
        printed(capsys, "ladder", "--format", "markdown", "--size", "v2-8", "--size", "v2-256")
    )
    comment = printed(capsys, "review", "--base", "HEAD")
    costs, figures = (table for table in tables(comment) if "v2-256" in table)
    svg = unescape(re.sub(r"<[^>]+>", "\n", printed(capsys, "ladder", "--format", "svg"))).split(
        "\n"
    )

    for size, cells in ladder.items():
        for column, name in SAME_COLUMNS.items():
            assert cells[column].split(" (")[0] == figures[size][name], (size, column)
        for column, name in SAME_COSTS.items():
            assert cells[column] == costs[size][name], (size, column)
        for column in ("cores", "batch_size", "train_steps", "learning_rate"):
            assert cells[column] in svg, (size, column)
    assert [cells["learning_rate"] for cells in ladder.values()] == ["1e-5", "0.0000565685"]
