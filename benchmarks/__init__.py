"""Benchmarks of tpucfg, as ratios to other commands measured in the same run: `make bench`."""
