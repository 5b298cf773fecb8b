"""The training step with abstract arguments, for `tpucfg fit`."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from trainer.model import SHAPES
from trainer.step import Options, adam, jitted_step, new_state, shardings


def abstract_step(devices: Sequence[jax.Device], flags: Mapping[str, str]) -> tuple[Any, tuple[Any, ...]]:
    """Return the step and the shapes of its arguments, divided over a slice."""
    axes = dict(axis.split("=") for axis in flags["mesh"].split(","))
    mesh = Mesh(np.array(devices).reshape(int(axes["data"]), int(axes["model"])), ("data", "model"))
    shape, optimizer = SHAPES[flags["model"]], adam(float(flags["learning_rate"]))
    by_name = shardings(shape, mesh)

    def placed(path: Any, leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        """Divide a parameter, and its moments of Adam in the same way; a counter is on each device."""
        sharding = by_name.get(str(getattr(path[-1], "key", "")), NamedSharding(mesh, P()))
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    state = jax.eval_shape(lambda key: new_state(key, shape, optimizer), jax.random.key(0))
    tokens = jax.ShapeDtypeStruct(
        (int(flags["batch_size"]), int(flags["sequence_length"]) + 1),
        jnp.int32,
        sharding=NamedSharding(mesh, P("data")),
    )
    options = Options(optimizer, mesh, int(flags.get("grad_accum", "1")), remat=flags.get("remat") != "none")
    return jitted_step(options), (jax.tree_util.tree_map_with_path(placed, state), tokens)
