"""The sentences of the page about GKE on placement, queues, restarts, ends and submission are backed."""

from pathlib import Path
from typing import Any, Final

import yaml
from statements import sentences

from spec_factory import ROOT

PAGE: Final = ROOT / "docs" / "targets" / "gke.md"
TABLE: Final = Path(__file__).parent / "statements.yaml"
STATEMENTS: Final[list[dict[str, Any]]] = yaml.safe_load(TABLE.read_text())


def test_every_sentence_is_backed() -> None:
    """A sentence begins with a row of the table, and a row is the beginning of one sentence."""
    left = [row["says"] for row in STATEMENTS]
    for _, sentence in sentences(PAGE):
        rows = [says for says in left if sentence.startswith(says)]
        assert len(rows) == 1, f"add this sentence to {TABLE.name}: {sentence}"
        left.remove(rows[0])
    assert left == []


def test_every_case_and_test_exists() -> None:
    """A row names cases of the outcomes, tests, or the source of what is Google's own."""
    cases = {row["case"] for row in yaml.safe_load((TABLE.parent / "outcomes.yaml").read_text())}
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for row in STATEMENTS:
        assert set(row) - {"says"} <= {"cases", "tests", "source"}, row
        assert len(row) > 1, row
        assert set(row.get("cases", ())) <= cases, row
        assert [name for name in row.get("tests", ()) if f"def {name}(" not in tests] == []
