"""The model on all devices: each has a copy of the parameters and a part of every batch."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from trainer import network, storage, tpu
from trainer.data import Examples
from trainer.notice import Notice

SEED = 0
EVALUATED = 1000
"""Batch size of the evaluation, rounded up to a multiple of the devices."""


class Replicas:
    """The model's state during training; `step` dispatches work, and `loss` waits for it."""

    def __init__(self, hosts: int) -> None:
        tpu.join(hosts)
        # With several hosts, JAX handles SIGTERM itself, and agrees with the other hosts on the step to stop at.
        self._notice = Notice() if hosts == 1 else None
        self.count = jax.device_count()
        self.is_first = jax.process_index() == 0
        mesh = Mesh(np.asarray(jax.devices()), ("batch",))
        self._shared, self._whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("batch",), ()))
        self._parameters = jax.jit(network.parameters, out_shardings=self._whole)(jax.random.key(SEED))
        self._loss = jnp.zeros(())

    def must_stop(self, step: int) -> bool:
        """Return True before the step at which all hosts stop, after one of them has received SIGTERM."""
        if self._notice:
            return self._notice.received
        return multihost_utils.reached_preemption_sync_point(step)

    def step(self, examples: Examples, indices: NDArray[np.int64], rate: float) -> None:
        """Train on one global batch: the examples with these indices."""
        images, labels = self._placed(examples.images, indices), self._placed(examples.labels, indices)
        self._parameters, self._loss = _step(self._parameters, images, labels, rate)

    def _placed(self, values: NDArray[Any], indices: NDArray[np.int64]) -> jax.Array:
        """Return the rows with these indices, sharded over all devices; a host loads only its own devices' rows."""
        shape = (len(indices), *values.shape[1:])
        every = (slice(None),)
        return jax.make_array_from_callback(shape, self._shared, lambda part: values[indices[(part or every)[0]]])

    def loss(self) -> float:
        """Return the loss of the last step."""
        return float(self._loss)

    def accuracy(self, examples: Examples) -> float:
        """Return the share of examples that are classified correctly."""
        total, size, correct = len(examples.labels), -(-EVALUATED // self.count) * self.count, 0
        for start in range(0, total, size):
            indices = np.arange(start, start + size)
            images = self._placed(examples.images, indices % total)
            labels = self._placed(np.where(indices < total, examples.labels[indices % total], -1), np.arange(size))
            correct += int(_correct(self._parameters, images, labels))
        return correct / total

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state for a checkpoint."""
        return {name: np.asarray(value) for name, value in self._parameters.items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state from a checkpoint."""
        if {name: value.shape for name, value in arrays.items()} != {
            name: value.shape for name, value in self._parameters.items()
        }:
            raise SystemExit("the checkpoint is of another network: give the job a folder of its own")
        self._parameters = jax.device_put(dict(arrays), self._whole)

    def agree(self, step: int) -> None:
        """End the program unless all hosts are at the same step: without a shared folder, their checkpoints differ."""
        steps = np.asarray(multihost_utils.process_allgather(np.int32(step))).reshape(-1)
        if len(set(steps.tolist())) > 1:
            message = f"the hosts have checkpoints of different steps: {', '.join(map(str, steps))}"
            raise SystemExit(f"{message}\nhelp: give a model_dir that all of them see, such as a folder in a bucket")

    @contextmanager
    def trace(self, folder: str | None) -> Iterator[None]:
        """Profile the block, if a folder is given."""
        if folder is None:
            yield
            return
        with tempfile.TemporaryDirectory() as local:
            with jax.profiler.trace(local):
                yield
            storage.upload(Path(local), folder)


@partial(jax.jit, donate_argnums=0)
def _step(
    parameters: network.Parameters, images: jax.Array, labels: jax.Array, rate: jax.Array
) -> tuple[network.Parameters, jax.Array]:
    loss, gradients = jax.value_and_grad(network.loss)(parameters, images, labels)
    return network.update(parameters, gradients, rate), loss


@jax.jit
def _correct(parameters: network.Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    return (network.logits(parameters, images).argmax(axis=1) == labels).sum()
