"""The table about resources has the risks that a reader has judged."""

from pathlib import Path
from typing import Final

import yaml

from tpucfg.changes.resource_meanings import MEANINGS

_RISKS: Final[list[str]] = yaml.safe_load(Path(__file__).with_name("risks.yaml").read_text())


def test_each_row_has_the_risk_of_the_list() -> None:
    """A row that is dropped, moved, renamed or judged in another way needs the same edit of risks.yaml."""
    assert [f"{row.risk.name.lower()} {row.pattern}" for row in MEANINGS] == _RISKS
