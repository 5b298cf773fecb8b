"""The table of meanings, of all kinds of facts."""

from typing import Final

from tpucfg.changes.job_meanings import JOB_MEANINGS
from tpucfg.changes.meanings import Meaning
from tpucfg.changes.project_meanings import PROJECT_MEANINGS

MEANINGS: Final[tuple[Meaning, ...]] = (*JOB_MEANINGS, *PROJECT_MEANINGS)
"""The first row that matches and applies decides."""
