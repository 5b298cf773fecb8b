"""Give command lines to MaxText's own parser; runs in an environment with MaxText, which this project does not import.

Reads one JSON object with `args`, `topology` and `slices` a line, and prints one with the parsed figures a line.
"""

import json
import logging
import sys
from contextlib import redirect_stdout
from pathlib import Path

import maxtext  # in the environment of this script only
from maxtext.configs import pyconfig

BASE = Path(maxtext.__file__).parent / "configs" / "base.yml"
FIGURES = (
    "num_target_devices",
    "global_batch_size_to_train_on",
    "gradient_accumulation_steps",
    "steps",
    "learning_rate_schedule_steps",
    "enable_checkpointing",
    "learning_rate",
    "max_target_length",
    "checkpoint_period",
    "run_name",
    "base_output_directory",
)

logging.disable()
for line in sys.stdin:
    case = json.loads(line)
    target = [
        f"compile_topology={case['topology']}",
        f"compile_topology_num_slices={case['slices']}",
    ]
    with redirect_stdout(sys.stderr):
        config = pyconfig.initialize(["", str(BASE), *case["args"], *target])
    sys.stdout.write(json.dumps({figure: getattr(config, figure) for figure in FIGURES}) + "\n")
