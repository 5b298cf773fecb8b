"""Recorded measurements in `results/<environment>.jsonl`, and the status, gate and cost that are computed from them."""

from tpucfg.results.evaluation import RungEvaluation, Shortfall, evaluate_rungs
from tpucfg.results.records import THROUGHPUT, Record, Results, read_records

__all__ = [
    "THROUGHPUT",
    "Record",
    "Results",
    "RungEvaluation",
    "Shortfall",
    "evaluate_rungs",
    "read_records",
]
