"""What was measured on each rung: `results/<environment>.jsonl` beside the spec, and what follows for the climb."""

from tpucfg.results.line import Example
from tpucfg.results.model import THROUGHPUT, Record, Results
from tpucfg.results.read import latest, read
from tpucfg.results.standing import Shortfall, Standing, standings

__all__ = ["THROUGHPUT", "Example", "Record", "Results", "Shortfall", "Standing", "latest", "read", "standings"]
