"""The fit of a rung: what the real TPU compiler reports of its training step, without a TPU."""
