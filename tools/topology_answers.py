"""Ask the TPU compiler about topologies; runs in a Python with JAX and libtpu, and imports nothing of this project.

Reads a JSON list of questions from stdin, and prints one JSON object for the versions, and one for each question:
{"name": "v5e:4x4", "options": {}}                  -> {"devices": 16, "hosts": 4, "topology": [4, 4, 1]}
{"name": "v5e:4x4", "options": {}, "hbm": true}     -> {"hbm": "the compiler's refusal of a program of 2 TiB"}
A question that the compiler refuses has an answer with the key "error".
"""

import json
import os
import sys
from importlib.metadata import version
from typing import Any

# Without the first four, libtpu looks for a TPU and a metadata server, and a second process ends at its lock file. The
# last two may have flags of the shell, which change the answers.
os.environ |= {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "JAX_PLATFORMS": "cpu",
    "TPU_LOG_DIR": "disabled",
    "LIBTPU_INIT_ARGS": "",
    "XLA_FLAGS": "",
}
# libtpu prints to stdout too.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import jax  # noqa: E402  it reads the variables
from jax.experimental.topologies import get_topology_desc  # noqa: E402


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to one question."""
    try:
        devices: list[Any] = get_topology_desc(
            question["name"], "tpu", **question["options"]
        ).devices
    except (RuntimeError, ValueError) as error:
        return {"error": str(error)}
    if question.get("hbm"):
        return {"hbm": refusal(devices[0])}
    axes = [max(device.coords[axis] for device in devices) + 1 for axis in range(3)]
    hosts = len({device.process_index for device in devices})
    return {"devices": len(devices), "hosts": hosts, "topology": axes}


def refusal(device: Any) -> str:
    """Return the message by which the compiler refuses a program of 2 TiB on one device."""
    struct: Any = jax.ShapeDtypeStruct
    step = jax.jit(lambda x: x + 1, in_shardings=jax.sharding.SingleDeviceSharding(device))
    try:
        step.lower(struct((2**39,), "float32")).compile()
    except RuntimeError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    print(
        json.dumps({"jax": jax.__version__, "libtpu": version("libtpu")}), file=ANSWERS, flush=True
    )
    for asked in json.load(sys.stdin):
        print(json.dumps(answer(asked)), file=ANSWERS, flush=True)
