"""Settings that no job reads because of another setting of the spec, whatever the target is."""

from collections.abc import Iterator, Sequence

from tpucfg.spec.project import Environment, Project
from tpucfg.yamldoc.document import KeyPath


def unread_module(project: Project, layer: KeyPath, users: Sequence[Environment]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of a layer's module if its jobs have no package, and the reason: a container has its own command.

    Args:
        project: The project with the layered settings.
        layer: The path of the layer.
        users: The environments in whose jobs the layer takes part.
    """
    path = (*layer, "trainer", "module")
    module = project.document.node(path)
    if module is None or module.value is None or not users:
        return
    jobs = [
        (environment.name, size)
        for environment in users
        for size in environment.sizes
        if "overrides" not in layer or size == layer[-1]
    ]
    if all(project.settings[job].trainer.package is None for job in jobs):
        yield path, "only a Python package is run by its module, and no package is set"


def unread_rate_rule(project: Project) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of a rule that scales the learning rate of no rung, and the reason: no rung has another batch."""
    training = project.training
    has_batch = any(override.batch_size for override in project.overrides.values())
    if training.learning_rate_rule != "keep" and training.batch_rule == "keep" and not has_batch:
        yield (
            ("training", "learning_rate_rule"),
            "it scales the rate with the batch, and training.batch_rule keeps the batch on every rung",
        )
