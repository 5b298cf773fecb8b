"""The mesh: all devices of the job in a table, whose two axes have names.

Along "data", devices compute different examples; along "model", they share one replica's copy of an example. Arrays
are placed by these names: https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from trainer.flags import Flags

AXES = ("data", "model")

Shard = Callable[..., jax.Array]
"""Function that fixes how an array is split: `shard(x, "data", None)` splits its rows among the replicas."""


def create(devices: Sequence[Any], flags: Flags) -> Mesh:
    """Arrange the devices by the flags, so that neighbors in the table are neighbors in the slice.

    Raises:
        SystemExit: The flags need another number of devices, or the batch cannot be divided among the replicas.
    """
    replicas = flags.data_parallel or max(1, len(devices) // flags.model_parallel)
    if replicas * flags.model_parallel != len(devices):
        raise SystemExit(
            f"--data_parallel={replicas} and --model_parallel={flags.model_parallel} need "
            f"{replicas * flags.model_parallel} devices, and there are {len(devices)}\n"
            "help: their product is the number of devices; to try it on one machine, give --hosts=1 and both of them"
        )
    if flags.batch_size % (replicas * flags.grad_accum):
        raise SystemExit(
            f"--batch_size={flags.batch_size} cannot be divided among {replicas} replicas "
            f"with --grad_accum={flags.grad_accum}"
        )
    slices = len({getattr(device, "slice_index", 0) for device in devices})
    if slices > 1:  # replicas communicate least, and the network between slices is the slowest
        shape = (replicas // slices, flags.model_parallel)
        table = mesh_utils.create_hybrid_device_mesh(
            shape, (slices, 1), devices, allow_split_physical_axes=True
        )
    else:
        shape = (replicas, flags.model_parallel)
        table = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    return Mesh(table, AXES)


def sharding(mesh: Mesh, axes: PartitionSpec, shape: Sequence[int]) -> NamedSharding:
    """Return how an array is split; a dimension that its axis of the mesh does not divide is left whole."""
    divided = [
        name if name and size % mesh.shape[name] == 0 else None
        for name, size in zip(axes, shape, strict=False)
    ]
    return NamedSharding(mesh, PartitionSpec(*divided))


def constraint(mesh: Mesh) -> Shard:
    """Return the function with which a model fixes the sharding of its activations.

    Without it, the compiler decides, and may copy a whole batch of them to each device.
    """
    return lambda array, *axes: jax.lax.with_sharding_constraint(
        array, sharding(mesh, PartitionSpec(*axes), array.shape)
    )


def placed(
    mesh: Mesh,
    load: Callable[[NDArray[np.int64]], dict[str, NDArray[Any]]],
    indices: NDArray[np.int64],
) -> dict[str, jax.Array]:
    """Return the examples with these indices, split among the replicas along the second dimension of `indices`.

    Each host loads only the examples of its own devices.
    """
    split = NamedSharding(mesh, PartitionSpec(None, "data"))
    parts = split.addressable_devices_indices_map(indices.shape).values()
    own = sorted({(part[1].start or 0, part[1].stop or indices.shape[1]) for part in parts if part})
    local = load(np.concatenate([indices[:, start:stop] for start, stop in own], axis=1))
    return {
        name: jax.make_array_from_process_local_data(
            split, values, (*indices.shape, *values.shape[2:])
        )
        for name, values in local.items()
    }
