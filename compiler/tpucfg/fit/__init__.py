"""The compile probe: ask the TPU compiler about the training step of each rung, without a TPU."""
