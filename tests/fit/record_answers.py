"""Record answers of the worker in tests/fit/recorded, for tests that run without the TPU compiler.

PYTHONPATH=tests:compiler python tests/fit/record_answers.py NEW OLD    each the Python of an environment with libtpu

OLD has libtpu 0.0.19 or older, which words the refusal for lack of memory in another way.
"""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from compile_worker import Outcome, Slice, compile_step

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = Path(__file__).parent / "recorded"
V5E: Final = Slice("v5e:4x4", 16)
TRANSFORMER: Final = "transformer:abstract_step"
SMALL: Final = {
    "width": "256",
    "layers": "2",
    "length": "256",
    "batch_size": "32",
    "model_parallel": "2",
}
LARGE: Final = {**SMALL, "width": "8192", "layers": "64", "length": "8192", "model_parallel": "1"}


def main() -> None:
    """Run the worker for each file."""
    new, old = sys.argv[1:]
    slices = Slice("v5e:2x2", 8, {"num_slices": 2})
    recorded: Mapping[str, Outcome] = {
        "fits": compile_step(new, TRANSFORMER, V5E, flags=SMALL),
        "fits-slices": compile_step(new, TRANSFORMER, slices, flags=SMALL),
        "refused": compile_step(new, TRANSFORMER, V5E, flags=LARGE),
        "refused-old": compile_step(old, TRANSFORMER, V5E, flags=LARGE),
        "step-failed": compile_step(new, "hlo_module:fails_in_jit", V5E),
        "wrong-return": compile_step(new, "hlo_module:on_cpu", V5E),
        "no-module": compile_step(new, "absent:abstract_step", V5E),
        "unknown-flag": compile_step(
            new, TRANSFORMER, V5E, LIBTPU_INIT_ARGS="--xla_tpu_max_hbm_size_mb=8000"
        ),
        "unlike-any-flag": compile_step(new, TRANSFORMER, V5E, LIBTPU_INIT_ARGS="--absent_flag=1"),
        "illegal-value": compile_step(
            new, TRANSFORMER, V5E, LIBTPU_INIT_ARGS="--xla_tpu_enable_async_collective_fusion=maybe"
        ),
    }
    first = recorded["fits"].result
    known = [{key: first[key] for key in ("jax", "libtpu", "stablehlo")}]
    recorded = {**recorded, "known": compile_step(new, TRANSFORMER, V5E, flags=SMALL, known=known)}
    for name, outcome in recorded.items():
        lines = "".join(json.dumps(answer) + "\n" for answer in outcome.answers)
        (FOLDER / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        if outcome.status:
            # Process and time are in each line of the log.
            stderr = re.sub(r"00:00:[0-9.]+ +[0-9]+", "00:00:0.0 1", outcome.stderr)
            (FOLDER / f"{name}.stderr").write_text(stderr, encoding="utf-8")


if __name__ == "__main__":
    main()
