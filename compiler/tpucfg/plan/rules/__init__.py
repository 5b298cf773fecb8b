"""Rules about the planned jobs, one module per subject."""
