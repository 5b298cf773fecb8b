"""The model on all cores: each has a copy of the parameters and a part of every batch."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Iterator, Mapping

import numpy as np
import tensorflow as tf

from trainer import network, tpu
from trainer.notice import Notice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trainer.data import Examples

SEED = 1
EVALUATED = 1000
"""Batch size of the evaluation, rounded up to a multiple of the cores."""


class Replicas:
    """The model's state during training; `step` dispatches work, and `loss` waits for it."""

    is_first = True

    def __init__(self, hosts: int, strategy: tf.distribute.Strategy | None = None) -> None:
        if hosts > 1:
            raise SystemExit(
                f"--hosts={hosts}: this trainer runs on the cores of one host; leave larger sizes out"
            )
        self._notice = Notice()
        self._strategy = strategy or _strategy()
        self.count = self._strategy.num_replicas_in_sync
        with self._strategy.scope():
            self._parameters = network.parameters(SEED)
        self._loss = tf.zeros(())
        print(f"replicas: {self.count} ({type(self._strategy).__name__})", flush=True)

    def must_stop(self, _: int) -> bool:
        """Return True once the program has received SIGTERM."""
        return self._notice.received

    def step(self, examples: Examples, indices: NDArray[np.int64], rate: float) -> None:
        """Train on one global batch: the examples with these indices."""
        images, labels = (
            self._placed(examples.images, indices),
            self._placed(examples.labels, indices),
        )
        self._loss = self._step(
            images, labels, tf.constant(rate, tf.float32), tf.constant(len(indices), tf.float32)
        )

    @tf.function
    def _step(self, images: Any, labels: Any, rate: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
        def replica(
            images: tf.Tensor, labels: tf.Tensor, rate: tf.Tensor, size: tf.Tensor
        ) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(network.losses(self._parameters, images, labels)) / size
            gradients = tape.gradient(loss, self._parameters)
            together = tf.distribute.get_replica_context().all_reduce(
                tf.distribute.ReduceOp.SUM, gradients
            )
            network.update(self._parameters, together, rate)
            return loss

        losses = self._strategy.run(replica, args=(images, labels, rate, size))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def _placed(self, values: NDArray[Any], indices: NDArray[np.int64]) -> Any:
        """Return the rows with these indices, divided equally among the replicas."""
        parts = np.split(indices, self.count)
        return self._strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(values[parts[int(context.replica_id_in_sync_group)]])
        )

    def loss(self) -> float:
        """Return the loss of the last step."""
        return float(self._loss)

    def accuracy(self, examples: Examples) -> float:
        """Return the share of examples that are classified correctly."""
        total, size, correct = len(examples.labels), -(-EVALUATED // self.count) * self.count, 0
        for start in range(0, total, size):
            indices = np.arange(start, start + size)
            images = self._placed(examples.images, indices % total)
            labels = self._placed(
                np.where(indices < total, examples.labels[indices % total], -1), np.arange(size)
            )
            correct += int(self._correct(images, labels))
        return correct / total

    @tf.function
    def _correct(self, images: Any, labels: Any) -> tf.Tensor:
        def replica(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            guesses = tf.argmax(
                network.logits(self._parameters, images), axis=1, output_type=tf.int32
            )
            return tf.reduce_sum(tf.cast(guesses == labels, tf.int32))

        counts = self._strategy.run(replica, args=(images, labels))
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, counts, axis=None)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the state for a checkpoint."""
        return {name: value.numpy() for name, value in self._parameters.items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the state from a checkpoint."""
        if {name: value.shape for name, value in arrays.items()} != {
            name: value.shape for name, value in self._parameters.items()
        }:
            raise SystemExit(
                "the checkpoint is of another network: give the job a folder of its own"
            )
        for name, value in self._parameters.items():
            value.assign(arrays[name])

    def agree(self, step: int) -> None:
        """Do nothing: there is only one host."""

    @contextmanager
    def trace(self, folder: str | None) -> Iterator[None]:
        """Profile the block, if a folder is given."""
        if folder is None:
            yield
            return
        tf.profiler.experimental.start(folder)
        try:
            yield
        finally:
            tf.profiler.experimental.stop()


def _strategy() -> tf.distribute.Strategy:
    """Return the strategy for AI Platform's TPU, for a TPU of this machine, or for neither."""
    resolver = tpu.wait()
    if resolver is not None:
        tf.config.experimental_connect_to_cluster(resolver)
    elif tpu.attached():
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    else:
        return tf.distribute.MirroredStrategy()
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.experimental.TPUStrategy(resolver)  # the name in TensorFlow 2.2 too
