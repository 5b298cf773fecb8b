"""What several targets check in the same way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.plan.naming import MAX_ACCOUNT_ID_LENGTH, account_id, job_name
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath


def unsupported_sizes(
    project: Project, environment: Environment, slices: Sequence[Slice], target: str
) -> Iterator[Finding]:
    """An error for the sizes that the target does not take, one for each reason, naming the targets that take them."""
    refused_for: dict[str, list[Slice]] = {}
    for slice_ in slices:
        if target not in slice_.targets:
            refused_for.setdefault(slice_.refusals[target].why, []).append(slice_)
    for why, those in refused_for.items():
        names = listed([slice_.size for slice_ in those], last=" and ")
        path = (*environment.sizes_path, environment.sizes.index(those[0].size))
        others = ", ".join(name for name in those[0].targets if all(name in slice_.targets for slice_ in those))
        chooser = f"{dotted(environment.path)}.target" if _has_own_target(project, environment) else "target"
        move = (
            f"set {chooser} to one that takes {'it' if len(those) == 1 else 'them'} ({others}), or " if others else ""
        )
        yield Finding.of(
            "TPU024",
            f"{target} does not take {names}: {why}",
            project.document.value_location(path),
            help=f"{move}leave {names} out",
        )


def _has_own_target(project: Project, environment: Environment) -> bool:
    return "target" in project.document.data["environments"][environment.name]


def unsupported_trainer_key(project: Project, key: str, message: str, fix: str) -> Iterator[Finding]:
    """An error at a key of the trainer that the target has no use for; nothing where it is not given."""
    if key in project.document.data["trainer"]:
        yield Finding.of("TPU051", message, project.document.key_location(("trainer", key)), help=fix)


def long_account_id(project: Project, environment: Environment, target: str) -> Iterator[Finding]:
    """An error where the account that the stack would make has an id that Google refuses."""
    id_ = account_id(name=project.name, environment=environment.name)
    if len(id_) > MAX_ACCOUNT_ID_LENGTH:
        yield Finding.of(
            "TPU030",
            f"the account of {environment.name} would have the id {id_}: "
            f"{len(id_)} characters, and Google takes {MAX_ACCOUNT_ID_LENGTH}",
            project.document.key_location(environment.path),
            help=f"shorten the project's or the environment's name by {len(id_) - MAX_ACCOUNT_ID_LENGTH} characters, "
            f"or name an account of your own in targets.{target}.service_account",
        )


def unsupported_machines(project: Project, slices: Sequence[Slice], target: str, *, chooses: bool) -> Iterator[Finding]:
    """An error for each machine that an override names and its size does not run on. `chooses`: the spec may."""
    for slice_ in slices:
        override = project.overrides.get(slice_.size)
        names = [machine.name for machine in slice_.machines] if chooses else []
        if override is None or override.machine is None or override.machine in names:
            continue
        said = f"{slice_.size} runs on {' or '.join(names)}" if names else f"{target} chooses the machine itself"
        location = project.document.value_location(("overrides", slice_.size, "machine"))
        where = dotted(("overrides", slice_.size, "machine"))
        hint = f"set {where} to {' or '.join(names)}" if names else f"delete {where}"
        yield Finding.of("TPU026", f"{slice_.size} cannot run on {override.machine}: {said}", location, help=hint)


def package_unsupported(project: Project, target: str) -> Iterator[Finding]:
    """An error for a Python package on a target that starts a container and nothing else."""
    message = f"{target} runs a container, and trainer.package is a Python package"
    fix = "build an image that holds the package, name it as trainer.image, and delete package and module"
    return unsupported_trainer_key(project, "package", message, fix)


def long_job_names(
    project: Project, environment: Environment, slices: Sequence[Slice], longest: Callable[[Slice], int], source: str
) -> Iterator[Finding]:
    """An error for the job of an environment whose name is the furthest beyond what its service takes.

    `longest` says how many characters a job of that size may have. The id of a run makes a name longer still; the rules
    of the target's message see to that.
    """
    if not slices:  # no size of the environment is known, which another rule says
        return
    names = [job_name(name=project.name, environment=environment.name, size=it.size, run=None) for it in slices]
    name, slice_ = max(zip(names, slices, strict=True), key=lambda pair: len(pair[0]) - longest(pair[1]))
    if (excess := len(name) - longest(slice_)) > 0:
        yield Finding.of(
            "TPU030",
            f"the job {name} has a name of {len(name)} characters, and {longest(slice_)} are taken for {slice_.size}",
            project.document.key_location(environment.path),
            help=f"shorten the project's or the environment's name by {excess} characters",
            details=(f"the rule: {source}",),
        )


def service_problem(path: KeyPath, message: str, fix: str, *, at_key: bool = False) -> Problem:
    """A config that fits the API's schema and that the service refuses all the same. `at_key`: whatever its value."""
    return Problem("TPU074", f"{dotted(path)}: {message}", path, fix, at_key)


def without_empty(**fields: Any) -> dict[str, Any]:
    """The fields that have a value: None, and an empty list or mapping, is a field left out."""
    return {key: value for key, value in fields.items() if value not in (None, [], {}, "")}


def deep_merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both in one: mappings are merged key by key, and anything else that both have is the one above."""
    both = {key: deep_merge(below[key], above[key]) for key in below if _are_mappings(below[key], above.get(key))}
    return {**below, **above, **both}


def _are_mappings(*values: Any) -> bool:
    return all(isinstance(value, dict) for value in values)
