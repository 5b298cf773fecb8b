"""TPU of the job: waiting for a remote one, and detection of a local one.

AI Platform Training starts the program while its TPU is still being created, and names it in `TPU_CONFIG`. A runtime
version of the service waits for it; a program in a custom container has to wait itself:
https://cloud.google.com/ai-platform/training/docs/using-tpus. On Cloud TPU VMs, Vertex AI and GKE, the TPU is part of
the machine, `TPU_CONFIG` is not set, and no wait is needed.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Callable

TRIES = 40
PAUSE_SECONDS = 10
JOB = "worker"
"""Job name of the TPU's hosts in the cluster."""
CONTAINER = "TRAINER_CONTAINER"
"""Variable that the Dockerfile sets to mark a custom container. The service itself sets none that distinguishes it
from a runtime version."""


def wait(
    *,
    custom_container: bool | None = None,
    make_resolver: Callable[..., Any] | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> Any:
    """Wait for the job's TPU and return its resolver; None if the job has no remote TPU.

    Args:
        custom_container: True in a custom container; None to read the environment variable.
        make_resolver: Function that creates a resolver; None for TensorFlow's `TPUClusterResolver`.
        sleep: Function that waits between two tries.

    Raises:
        ValueError: `TPU_CONFIG` does not name a TPU.
        RuntimeError: The TPU was not available after the last try.
    """
    text = os.environ.get("TPU_CONFIG")
    if not text:
        return None
    if make_resolver is None:
        import tensorflow as tf

        make_resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    if custom_container is None:
        custom_container = bool(os.environ.get(CONTAINER))
    if not custom_container:
        return make_resolver()
    node = _node(text)
    cause: object = None
    for attempt in range(TRIES):
        if attempt:
            print(f"waiting for the TPU {node['tpu']}: {cause}", flush=True)
            sleep(PAUSE_SECONDS)
        try:
            resolver = make_resolver(job_name=JOB, **node)
            cluster = resolver.cluster_spec().as_dict()
        except Exception as error:  # noqa: BLE001 - the next try may succeed after any error of client or network
            cause = f"{type(error).__name__}: {error}"
            continue
        if JOB in cluster:
            return resolver
        cause = f"its cluster has no {JOB}: {cluster}"
    raise RuntimeError(
        f"no TPU {node['tpu']} after {TRIES} tries, {PAUSE_SECONDS} seconds apart; at last, {cause}"
    )


def _node(text: str) -> dict[str, Any]:
    """Return the resolver's arguments from TPU_CONFIG."""
    try:
        config = json.loads(text)
        return {
            "tpu": config["tpu_node_name"],
            "zone": config["zone"],
            "project": config["project"],
        }
    except (ValueError, TypeError, KeyError) as error:
        expected = "JSON with tpu_node_name, zone and project"
        raise ValueError(
            f"TPU_CONFIG is not {expected} ({type(error).__name__}: {error}): {text}"
        ) from None


def attached(devices: Path = Path("/dev")) -> bool:
    """Return True if the machine has local TPU chips."""
    return any(devices.glob("accel[0-9]*")) or any(devices.glob("vfio/[0-9]*"))
