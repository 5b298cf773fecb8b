"""The tables about resources have the risks that a reader has judged."""

from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tpucfg.changes import resource_meanings

_RISKS: Final[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("risks.yaml").read_text())
_TABLES: Final = {
    "resources": resource_meanings.MEANINGS,
    "other inputs": resource_meanings.OTHER_MEANINGS,
}


@pytest.mark.parametrize("name", _TABLES)
def test_each_row_has_the_risk_of_the_list(name: str) -> None:
    """A row that is dropped, moved, renamed or judged in another way needs the same edit of risks.yaml."""
    assert [f"{row.risk.name.lower()} {row.pattern}" for row in _TABLES[name]] == _RISKS[name]
