"""Changes to what the TPU compiler reports of the training step of each rung."""
