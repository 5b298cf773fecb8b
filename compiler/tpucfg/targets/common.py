"""Checks and request body helpers that several targets share."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

from tpucfg.catalog import Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.plan.job import Job
from tpucfg.plan.naming import MAX_ACCOUNT_ID_LENGTH, account_id, job_name
from tpucfg.schemas import Problem
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.settings import Settings
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import KeyPath

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The scope of all of Google Cloud, for hosts whose account's roles limit its access:
https://cloud.google.com/compute/docs/access/service-accounts#associating_a_service_account_to_an_instance."""


def unsupported_sizes(
    project: Project, environment: Environment, slices: Sequence[Slice], target: str
) -> Iterator[Finding]:
    """Yield an error for each reason why the target does not support sizes, with the targets that support them."""
    refused: dict[str, list[Slice]] = {}
    for slice_ in slices:
        if target not in slice_.targets:
            refused.setdefault(slice_.refusals[target].reason, []).append(slice_)
    for reason, refused_slices in refused.items():
        names = listed([slice_.size for slice_ in refused_slices], last=" and ")
        path = (*environment.sizes_path, environment.sizes.index(refused_slices[0].size))
        common = set.intersection(*(set(slice_.targets) for slice_ in refused_slices))
        others = ", ".join(name for name in refused_slices[0].targets if name in common)
        pronoun = "it" if len(refused_slices) == 1 else "them"
        move = f"{_target_edit(project, environment, target)} that supports {pronoun} ({others}), or " if others else ""
        # Without all of its rungs, the ladder would be empty, which is an error too.
        is_whole = len(refused_slices) == len(environment.sizes)
        replace = f"replace {names} by sizes that {target} supports: tpucfg sizes --target {target}"
        yield Finding.of(
            "TPU024",
            f"{target} does not support {names}: {reason}",
            project.document.value_location(path),
            help=f"{move}{replace if is_whole else f'leave {names} out'}",
            # The sources are read only here, because most specs have no such size.
            details=[f"see {Catalog().sources[source].url}" for source in _refusal_sources(refused_slices, target)],
        )


def _refusal_sources(slices: Sequence[Slice], target: str) -> list[str]:
    """Return the ids of the sources of several refusals, each once."""
    return list(dict.fromkeys(source for slice_ in slices for source in slice_.refusals[target].sources))


def _target_edit(project: Project, environment: Environment, target: str) -> str:
    """Return the beginning of the edit that chooses another target: in the spec, or on the command line."""
    data = project.document.data
    own = data["environments"][environment.name].get("target")
    if target != (own or data.get("target")):
        return "give --target one"
    return f"set {dotted(environment.path) + '.' if own else ''}target to one"


def distinct_settings(project: Project, environment: Environment, slices: Sequence[Slice]) -> tuple[Settings, ...]:
    """Return the settings of the environment's jobs on these sizes, equal ones once."""
    # If all sizes of the ladder are unknown, which is TPU020, the rest of the environment is still checked.
    sizes = [slice_.size for slice_ in slices] or [""]
    settings = (project.settings[environment.name, size] for size in sizes)
    return tuple({id(value): value for value in settings}.values())


def uses_own_account(project: Project, environment: Environment, slices: Sequence[Slice], target: str) -> bool:
    """Return True if every job on these sizes runs as an account that the spec names."""
    settings = distinct_settings(project, environment, slices)
    return all(each.targets.get(target, {}).get("service_account") for each in settings)


def long_account_id(project: Project, environment: Environment, target: str) -> Iterator[Finding]:
    """Yield an error if the id of the account that the stack would create is too long."""
    id_ = account_id(name=project.name, environment=environment.name)
    if len(id_) > MAX_ACCOUNT_ID_LENGTH:
        yield Finding.of(
            "TPU030",
            f"the account of {environment.name} would have the id {id_}: "
            f"it has {len(id_)} characters, and Google allows {MAX_ACCOUNT_ID_LENGTH}",
            project.document.key_location(environment.path),
            help=f"shorten the project's or the environment's name by {len(id_) - MAX_ACCOUNT_ID_LENGTH} characters, "
            f"or set targets.{target}.service_account to an account of your own",
        )


def unsupported_machines(
    project: Project, slices: Sequence[Slice], target: str, *, chooses: bool, chooses_all: bool = False
) -> Iterator[Finding]:
    """Yield an error for each override whose machine its size does not run on, or whose topology it does not have.

    Args:
        project: The project with the overrides.
        slices: The sizes to check.
        target: The name of the target.
        chooses: True if the spec may choose the machine on this target.
        chooses_all: True if it may also choose the topology, and machines that are provided only by name.
    """
    yield from _unsupported_topologies(project, slices, target, chooses=chooses_all)
    for slice_ in slices:
        override = project.overrides.get(slice_.size)
        machines = (*slice_.machines, *(slice_.named_machines if chooses_all else ()))
        names = [machine.name for machine in machines] if chooses else []
        if override is None or override.machine is None or override.machine in names:
            continue
        path = ("overrides", slice_.size, "machine")
        reason = f"{slice_.size} runs on {' or '.join(names)}" if names else f"{target} chooses the machine itself"
        message = f"{slice_.size} cannot run on {override.machine}: {reason}"
        hint = f"set {dotted(path)} to {' or '.join(names)}" if names else f"delete {dotted(path)}"
        yield Finding.of("TPU026", message, project.document.value_location(path), help=hint)


def _unsupported_topologies(
    project: Project, slices: Sequence[Slice], target: str, *, chooses: bool
) -> Iterator[Finding]:
    for slice_ in slices:
        override = project.overrides.get(slice_.size)
        names = slice_.topologies if chooses else ()
        if override is None or override.topology is None or override.topology in names:
            continue
        path = ("overrides", slice_.size, "topology")
        shapes = listed(names, 12, last=" or ")
        reason = f"its chips form {shapes}" if names else f"{target} chooses the topology itself"
        hint = f"set {dotted(path)} to {shapes}" if names else f"delete {dotted(path)}"
        message = f"{slice_.size} cannot have the topology {override.topology}: {reason}"
        yield Finding.of("TPU026", message, project.document.value_location(path), help=hint)


def package_unsupported(
    project: Project, environment: Environment, slices: Sequence[Slice], target: str
) -> Iterator[Finding]:
    """Yield an error for each layer with a Python package, on a target that runs only containers."""
    for settings in distinct_settings(project, environment, slices):
        if package := settings.layers.find("trainer", "package"):
            yield Finding.of(
                "TPU051",
                f"{target} runs containers, and {dotted(package.path)} is a Python package",
                project.document.key_location(package.path),
                help="build an image with the package, set trainer.image to it, and delete package and module",
            )


def long_job_names(
    project: Project, environment: Environment, slices: Sequence[Slice], max_length: Callable[[Slice], int], source: str
) -> Iterator[Finding]:
    """Yield an error for the job of an environment whose name exceeds the service's limit by most characters.

    `max_length` returns the limit for a size. Names are checked without a run id; the rules of the request body check
    the complete name.
    """
    if not slices:  # all sizes of the environment are unknown, which is TPU020
        return
    names = [job_name(name=project.name, environment=environment.name, size=slice_.size, run=None) for slice_ in slices]
    name, slice_ = max(zip(names, slices, strict=True), key=lambda pair: len(pair[0]) - max_length(pair[1]))
    if (excess := len(name) - max_length(slice_)) > 0:
        yield Finding.of(
            "TPU030",
            f"the job name {name} has {len(name)} characters, and {max_length(slice_)} are allowed for {slice_.size}",
            project.document.key_location(environment.path),
            help=f"shorten the project's or the environment's name by {excess} characters",
            details=(f"the rule: {source}",),
        )


def reservation_path(job: Job, collection: Literal["zones", "locations"]) -> str | None:
    """Return the full name of a job's reservation, with the zone that the spec omits; None for other capacity.

    Args:
        job: The job, whose size has a zone: a reservation without one is TPU005.
        collection: The word before the zone in the names of the target's API.
    """
    capacity = job.capacity
    if capacity.reservation is None:
        return None
    project = capacity.reservation_project or job.environment.project
    return f"projects/{project}/{collection}/{job.zone}/reservations/{capacity.reservation_name}"


def google_account(job: Job) -> str:
    """Return the Google account that a job runs as: the one that the spec names, or the environment's own."""
    account: str = job.options.get("service_account") or job.account
    return account


def service_problem(path: KeyPath, message: str, fix: str, *, at_key: bool = False) -> Problem:
    """Return the problem of a request body that fits the API's schema and that the service would refuse.

    `at_key` places it at the key, if no value of the field would be accepted.
    """
    return Problem("TPU074", f"{dotted(path)}: {message}", path, fix, at_key)


def without_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields without those that are None or an empty text, list or mapping."""
    return {key: value for key, value in fields.items() if value not in (None, [], {}, "")}
