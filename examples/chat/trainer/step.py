"""The training step: gradients of several micro-batches, one update by Adam."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from trainer.model import Params, Shape, layout, loss


class Options(NamedTuple):
    """The parts of the step that do not change from step to step."""

    optimizer: optax.GradientTransformation
    mesh: Mesh
    grad_accum: int = 1
    remat: bool = True


class State(NamedTuple):
    """The parameters, and what the optimizer keeps of them."""

    params: Params
    optimizer: optax.OptState


def shardings(shape: Shape, mesh: Mesh) -> dict[str, NamedSharding]:
    """Return how the mesh divides each parameter."""
    return {name: NamedSharding(mesh, spec) for name, (_, spec) in layout(shape).items()}


def adam(learning_rate: float) -> optax.GradientTransformation:
    """Return the optimizer."""
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(learning_rate, b2=0.95, weight_decay=0.1))


def new_state(key: jax.Array, shape: Shape, optimizer: optax.GradientTransformation) -> State:
    """Return random parameters."""
    keys = jax.random.split(key, len(layout(shape)))
    params = {
        name: 0.02 * jax.random.normal(each, dimensions)
        for each, (name, (dimensions, _)) in zip(keys, layout(shape).items(), strict=True)
    }
    return State(params, optimizer.init(params))


def train_step(state: State, tokens: jax.Array, options: Options) -> tuple[State, jax.Array]:
    """Return the next state, and the loss of this one on the sequences of one global batch."""
    gradients = jax.value_and_grad(partial(loss, mesh=options.mesh, remat=options.remat))

    def accumulate(totals: Any, part: jax.Array) -> tuple[Any, None]:
        part = jax.lax.with_sharding_constraint(part, NamedSharding(options.mesh, P("data")))
        return jax.tree.map(jnp.add, totals, gradients(state.params, part)), None

    zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, state.params))
    parts = tokens.reshape(-1, options.grad_accum, tokens.shape[1]).swapaxes(0, 1)
    totals, _ = jax.lax.scan(accumulate, zeros, parts)
    mean_loss, grads = jax.tree.map(lambda total: total / options.grad_accum, totals)
    updates, optimizer_state = options.optimizer.update(grads, state.optimizer, state.params)
    return State(optax.apply_updates(state.params, updates), optimizer_state), mean_loss


def jitted_step(options: Options) -> Any:
    """Return the step for `state, tokens`; it reuses the memory of the state that it replaces."""
    return jax.jit(partial(train_step, options=options), donate_argnums=0)
