"""The training step: one program for all devices, made from the flags alone.

`train.py` runs it, and `fit.py` gives it to `tpucfg fit`, so that both compile the same program.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from trainer import mesh, mnist, transformer
from trainer.flags import Flags
from trainer.model_interface import Batch, Model, Parameters

MODELS: Final[Mapping[str, Callable[[Flags, mesh.Shard], Model]]] = {
    "mnist": mnist.build,
    "transformer": transformer.build,
}
SEED = 0


class State(NamedTuple):
    """All that a step changes."""

    parameters: Parameters
    optimizer: Any
    """State of the optimizer, such as its mean gradients."""


class Program(NamedTuple):
    """The jitted functions of a job, and the abstract arguments of its step."""

    mesh: Mesh
    model: Model
    start: Any
    """Jitted: returns the initial state."""
    step: Any
    """Jitted: returns the state after one step, and the loss, for a state, a batch and a learning rate."""
    evaluate: Any
    """Jitted: returns the sums of the metrics of those examples of a batch whose `counts` is 1, for parameters."""
    arguments: tuple[State, dict[str, jax.ShapeDtypeStruct], jax.ShapeDtypeStruct]
    """Abstract arguments of `step`. Its batch has a micro-batch in each row."""


def program(devices: Sequence[Any], flags: Flags) -> Program:
    """Build the program for these devices, which may be those of a slice that this machine does not have."""
    table = mesh.create(devices, flags)
    model = MODELS[flags.model](flags, mesh.constraint(table))
    whole = NamedSharding(table, PartitionSpec())
    abstract = _abstract_state(table, model)
    places = jax.tree.map(lambda leaf: leaf.sharding, abstract)
    micro = (flags.grad_accum, flags.batch_size // flags.grad_accum)
    split = NamedSharding(table, PartitionSpec(None, "data"))
    batch = {
        name: jax.ShapeDtypeStruct((*micro, *one.shape), one.dtype, sharding=split)
        for name, one in model.example.items()
    }
    return Program(
        mesh=table,
        model=model,
        start=jax.jit(partial(_start, model), out_shardings=places),
        step=jax.jit(
            partial(_step, model, places),
            in_shardings=(places, split, whole),
            out_shardings=(places, whole),
            donate_argnums=0,
        ),
        evaluate=jax.jit(partial(_evaluate, model), out_shardings=whole),
        arguments=(abstract, batch, jax.ShapeDtypeStruct((), jnp.float32, sharding=whole)),
    )


def _start(model: Model) -> State:
    parameters = model.initial(jax.random.key(SEED))
    return State(parameters, model.optimizer(0.0).init(parameters))


def _abstract_state(table: Mesh, model: Model) -> State:
    """Return the shapes of the state and their places: what the optimizer keeps of a parameter is placed like it."""

    def place(leaf: jax.ShapeDtypeStruct, axes: PartitionSpec) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=mesh.sharding(table, axes, leaf.shape)
        )

    shapes = jax.eval_shape(partial(_start, model))
    other = partial(place, axes=PartitionSpec())
    optimizer = optax.tree_map_params(
        model.optimizer(0.0), place, shapes.optimizer, model.axes, transform_non_params=other
    )
    return State(jax.tree.map(place, shapes.parameters, model.axes), optimizer)


def _step(
    model: Model, places: State, state: State, batch: Batch, rate: jax.Array
) -> tuple[State, jax.Array]:
    """Train on one batch: add up the gradients of its micro-batches, and update the parameters once."""

    def loss(parameters: Parameters, examples: Batch) -> jax.Array:
        return model.metrics(parameters, examples)["loss"].mean()

    def add(total: Any, examples: Batch) -> tuple[Any, None]:
        value, gradients = jax.value_and_grad(loss)(state.parameters, examples)
        gradients = jax.lax.with_sharding_constraint(gradients, places.parameters)
        return jax.tree.map(jnp.add, total, (value, gradients)), None

    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, state.parameters))
    total, _ = jax.lax.scan(add, zero, batch)
    count = len(jax.tree.leaves(batch)[0])
    mean, gradients = jax.tree.map(lambda value: value / count, total)
    updates, optimizer = model.optimizer(rate).update(gradients, state.optimizer, state.parameters)
    return State(optax.apply_updates(state.parameters, updates), optimizer), mean


def _evaluate(model: Model, parameters: Parameters, batch: Batch) -> dict[str, jax.Array]:
    examples = jax.tree.map(lambda values: values[0], batch)
    counts = examples.pop("counts")
    return {
        name: (values * counts).sum()
        for name, values in model.metrics(parameters, examples).items()
    }
