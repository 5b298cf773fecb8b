"""Recorded measurements in `results/<environment>.jsonl`, and the status, gate and cost that are computed from them."""
