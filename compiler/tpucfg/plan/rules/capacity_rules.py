"""Rules about capacity: what the target refuses, what Google's pages leave open, and what a kind of capacity needs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tpucfg.catalog import TARGET_FACTS, Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import grouped
from tpucfg.plan.naming import zone_of
from tpucfg.plan.rules.capacity_table import (
    CAPACITY_TABLE,
    CLUSTER_AUTOSCALER,
    COMPUTE_FLEX,
    FLEX_START_SECONDS,
    FLEX_START_ZONES,
    GKE_FLEX,
    CapacityRow,
    capacity_verdict,
)
from tpucfg.plan.rules.scaling_warnings import shows_checkpoints
from tpucfg.plan.rung import slice_in_force
from tpucfg.plan.selection import SelectedSizes
from tpucfg.spec import CapacityKind, Environment, Project, Settings
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import KeyPath

_RESERVATION_NAME: Final = "https://cloud.google.com/vertex-ai/docs/training/use-reservations"
_PREEMPTION: Final = "https://cloud.google.com/compute/docs/instances/spot"
_SUSPENDED: Final = "https://cloud.google.com/tpu/docs/spot"
_CLASSES: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes"
_FOLDERS: Final = ("${job_dir}", "${run_dir}")
_UNCERTAIN_ON_DEMAND: Final = {
    row.target for row in CAPACITY_TABLE if (row.kind, row.level) == ("on-demand", "warning")
}
"""The targets on which even on-demand capacity is left open for some sizes."""
_FLEX_START_PAGES: Final = {
    "gke": (f"the maximum: {GKE_FLEX}", f"both limits: {CLUSTER_AUTOSCALER}"),
    "compute-engine": (f"both limits: {COMPUTE_FLEX}",),
}


class _Choice(NamedTuple):
    """The capacity of one selected size."""

    environment: Environment
    slice: Slice
    settings: Settings
    path: KeyPath
    """The path of the layer that sets the capacity."""
    row: CapacityRow
    """The verdict of the table."""

    @property
    def target(self) -> str:
        return self.environment.target

    @property
    def kind(self) -> CapacityKind:
        return self.settings.capacity.kind

    @property
    def has_class(self) -> bool:
        """True if a compute class of GKE decides how nodes are bought."""
        return _class_of(self.target, self.settings) is not None


def capacity_findings(project: Project, catalog: Catalog, selected: SelectedSizes) -> Iterator[Finding]:
    """Yield the findings about the capacity of the selected sizes."""
    choices = tuple(_choices(project, catalog, selected))
    by_class = [choice for choice in choices if choice.has_class]
    yield from _class_and_capacity(project, by_class)
    for rule in _RULES:
        yield from rule(project, [choice for choice in choices if not choice.has_class])


def _choices(project: Project, catalog: Catalog, selected: SelectedSizes) -> Iterator[_Choice]:
    for environment, sizes in selected:
        target = environment.target
        for size in sizes:
            settings = project.settings[environment.name, size]
            # Most rules do not apply to on-demand without a class, which is the capacity of most specs.
            if (
                settings.capacity.kind == "on-demand"
                and not _class_of(target, settings)
                and target not in _UNCERTAIN_ON_DEMAND
            ):
                continue
            slice_ = catalog.find(size)
            # A size that the target does not support at all is TPU024.
            if slice_ and target in slice_.targets:
                slice_ = slice_in_force(project, target, slice_)
                row = capacity_verdict(target, slice_, settings.capacity.kind)
                yield _Choice(environment, slice_, settings, settings.source(("capacity",)), row)


def _class_of(target: str, settings: Settings) -> str | None:
    """Return the compute class of GKE that decides how nodes are bought; None if there is none."""
    return settings.targets.get("gke", {}).get("compute_class") if target == "gke" else None


def _grouped(choices: Sequence[_Choice], key: Callable[[_Choice], object]) -> Iterator[list[_Choice]]:
    """Yield the choices that share a key and the layer that sets their capacity, so that one mistake is one finding."""
    yield from grouped(((choice.path, choice.target, key(choice)), choice) for choice in choices).values()


# What the table decides


def _verdicts(project: Project, choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Yield refusals of the table, and its doubts where it refuses nothing else of the same layer."""
    refused, refused_paths = _refused(choices), _refused_paths(choices)
    open_ = [choice for choice in choices if choice.row.level == "warning" and choice.path not in refused_paths]
    for group in _grouped(refused, lambda choice: choice.row):
        yield _refusal(project, choices, group)
    quoted: dict[str, KeyPath] = {}
    open_groups = _grouped(open_, lambda choice: choice.row)
    for group in sorted(open_groups, key=lambda group: project.document.value_location(_shown_path(project, group[0]))):
        row, kind, path = group[0].row, group[0].kind, _shown_path(project, group[0])
        # A quotation of several lines is read once, at the first place.
        is_first = quoted.setdefault(row.text, path) == path
        reason = row.text if is_first else f"{dotted(quoted[row.text])} has the reason"
        message = f"{group[0].target} may refuse {_sizes(group)} with capacity {kind}: {reason}"
        hint = f"{_other_capacity(project, choices, group)}, or allow TPU056 with your reason"
        yield _finding(project, "TPU056", message, path, hint, _sources(row))


def _other_capacity(project: Project, choices: Sequence[_Choice], group: Sequence[_Choice]) -> str:
    """Return the edit that sets a capacity without doubt: flex-start with its duration, or on-demand."""
    path = _edit_path(project, choices, group)
    if group[0].target not in _UNCERTAIN_ON_DEMAND:
        return f"set {dotted(path)} to on-demand"
    durations = [choice.settings.trainer.max_run_duration for choice in group]
    is_valid = all(each and each.seconds in FLEX_START_SECONDS for each in durations)
    return f"set {dotted(path)} to flex-start" + ("" if is_valid else f" and {_duration_edit(path)}")


def _duration_edit(capacity: KeyPath) -> str:
    """Return the edit that limits a run in the layer of its capacity, so that no other run is limited."""
    return f"{dotted((*capacity[:-1], 'trainer', 'max_run_duration'))} to 12h"


def _shown_path(project: Project, choice: _Choice) -> KeyPath:
    """Return the path of the capacity, or of the size in its ladder if the spec sets no capacity."""
    environment = choice.environment
    is_set = project.document.node(choice.path) is not None
    return choice.path if is_set else (*environment.sizes_path, environment.sizes.index(choice.slice.size))


def _refused(choices: Sequence[_Choice]) -> list[_Choice]:
    return [choice for choice in choices if choice.row.level == "error"]


def _refused_paths(choices: Sequence[_Choice]) -> set[KeyPath]:
    """Return the layers whose capacity is refused for some size; another finding there would repeat the mistake."""
    return {choice.path for choice in _refused(choices)}


def _refusal(project: Project, choices: Sequence[_Choice], group: Sequence[_Choice]) -> Finding:
    first, row = group[0], group[0].row
    message = f"{first.target} does not take {_sizes(group)} with capacity {first.kind}: {row.text}"
    hint = f"set {dotted(_edit_path(project, choices, group))} to on-demand"
    return _finding(project, "TPU055", message, first.path, hint, (*_sources(row), *_other_targets(group)))


def _edit_path(project: Project, choices: Sequence[_Choice], group: Sequence[_Choice]) -> KeyPath:
    """Return the path at which another capacity changes no other size and no other environment."""
    first, environment = group[0], group[0].environment
    same_layer = [choice for choice in choices if choice.path == first.path]
    own = [choice for choice in same_layer if choice.environment.name == environment.name]
    if any(choice.environment.name != environment.name for choice in group):
        return first.path
    if len(group) == 1 and len(own) > 1:
        return (*environment.path, "overrides", first.slice.size, "capacity")
    if len(own) == len(same_layer):
        return first.path
    if first.path[0] == "overrides":
        return (*environment.path, *first.path)
    # A size's override would be an error beside a capacity of the environment.
    overrides = project.document.data.get("overrides", {})
    is_free = not any("capacity" in overrides.get(size, {}) for size in environment.sizes)
    return (*environment.path, "capacity") if is_free else first.path


def _other_targets(group: Sequence[_Choice]) -> Iterator[str]:
    """Yield the targets that take all of the sizes with this capacity, if there are any."""
    names = [
        name
        for name in group[0].slice.targets
        if all(name in choice.slice.targets and _is_taken(name, choice) for choice in group)
    ]
    if names:
        verb, pronoun = "takes" if len(names) == 1 else "take", "it" if len(group) == 1 else "them"
        yield f"{listed(names, last=' and ')} {verb} {pronoun} with capacity {group[0].kind}"


def _is_taken(target: str, choice: _Choice) -> bool:
    return capacity_verdict(target, choice.slice, choice.kind).level == "allowed"


def _sources(row: CapacityRow) -> tuple[str, ...]:
    return tuple(f"see {url}" for url in row.sources)


# What a kind of capacity needs


def _flex_start_zones(project: Project, choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Yield a warning for flex-start on gke outside the zones of GKE's page."""
    outside = [
        choice
        for choice in choices
        if (choice.target, choice.kind) == ("gke", "flex-start")
        and (zones := FLEX_START_ZONES.get(choice.slice.generation))
        and not _is_in(choice, zones)
    ]
    for group in _grouped(outside, lambda choice: (choice.environment.name, choice.slice.generation, _place(choice))):
        zones = FLEX_START_ZONES[group[0].slice.generation]
        message = f"GKE's page on flex-start does not list {_place(group[0])} for {_sizes(group)}"
        details = (f"it lists {listed(zones, last=' and ')}: {GKE_FLEX}",)
        edit_path = _edit_path(project, choices, group)
        hint = f"set {dotted(edit_path)} to on-demand, or allow TPU056 with your reason"
        yield _finding(project, "TPU056", message, group[0].path, hint, details)


def _place(choice: _Choice) -> str:
    """Return the zone that the spec names for the size, or else the region."""
    return choice.environment.zones.get(choice.slice.size) or choice.environment.region


def _is_in(choice: _Choice, zones: Sequence[str]) -> bool:
    zone = choice.environment.zones.get(choice.slice.size)
    return zone in zones if zone else any(name.rpartition("-")[0] == choice.environment.region for name in zones)


def _flex_start_duration(project: Project, choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Yield an error for flex-start without a run duration, or with one that it does not accept."""
    refused_paths = _refused_paths(choices)
    for choice in choices:
        details = _FLEX_START_PAGES.get(choice.target, ())
        duration = choice.settings.trainer.max_run_duration
        if choice.kind != "flex-start" or choice.path in refused_paths:
            continue
        path = choice.settings.source(("trainer", "max_run_duration"))
        if duration is None:
            message = "capacity flex-start needs trainer.max_run_duration: the machines are provided for that time"
            yield _finding(project, "TPU057", message, choice.path, f"set {_duration_edit(choice.path)}", details)
        elif duration.seconds not in FLEX_START_SECONDS:
            message = f"{dotted(path)} is {duration.text}, and flex-start takes 10 minutes to 7 days"
            limit = "10m" if duration.seconds < FLEX_START_SECONDS[0] else "7d"
            yield _finding(project, "TPU057", message, path, f"set {dotted(path)} to {limit}", details)


def _spot_without_checkpoints(project: Project, choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Yield a warning for spot machines if nothing in the spec shows that the program writes checkpoints."""
    refused_paths = _refused_paths(choices)
    lost = [
        choice
        for choice in choices
        if choice.kind == "spot"
        and choice.path not in refused_paths
        and not writes_checkpoints(project, choice.settings)
    ]
    for group in _grouped(lost, lambda _: None):
        message = (
            f"{_sizes(group)} can be preempted at any time, and nothing in the spec shows that the program "
            "writes checkpoints: it would start from the beginning"
        )
        hint = "pass the job's folder to the program, such as trainer.args.model_dir: ${job_dir}, or allow TPU058"
        yield _finding(project, "TPU058", message, group[0].path, hint, (f"see {_PREEMPTION}",))


def writes_checkpoints(project: Project, settings: Settings) -> bool:
    """Return True if a flag or a figure is named after checkpoints, or the program is given the job's own folder."""
    trainer = settings.trainer
    names = (
        *project.training.steps,
        *(arg.name for arg in trainer.args if arg.values[:1] != ("false",)),
        *(key for key, _ in trainer.env),
    )
    texts = (*trainer.texts, *(mount.source for mount in trainer.mounts))
    return any(map(shows_checkpoints, names)) or any(folder in text for text in texts for folder in _FOLDERS)


def _restarts_of_spot(project: Project, choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Yield a warning for restarts on spot machines of cloud-tpu, whose request is suspended by a preemption."""
    held = [
        choice
        for choice in choices
        if (choice.target, choice.kind) == ("cloud-tpu", "spot") and choice.settings.trainer.restarts
    ]
    for group in _grouped(held, lambda choice: choice.settings.source(("trainer", "restarts"))):
        path = group[0].settings.source(("trainer", "restarts"))
        message = (
            f"{dotted(path)} restarts the program after a failure, and not after a preemption: cloud-tpu suspends the "
            f"request of {_sizes(group)}, and it keeps its id"
        )
        hint = "run the delete and the start command of tpucfg submit again after a preemption, and allow TPU127"
        yield _finding(project, "TPU127", message, path, hint, (f"see {_SUSPENDED}",))


def _reservations_without_zone(project: Project, choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Yield an error for a reservation without a full name: no list has a zone for the size."""
    for choice in choices:
        environment, size = choice.environment, choice.slice.size
        if choice.kind != "reservation" or not TARGET_FACTS[choice.target].reservation_has_zone:
            continue
        if zone_of(environment, choice.slice) or (choice.slice.zones and "TPU021" not in project.allow):
            continue  # TPU021 reports that the region does not offer the size
        path = (*environment.path, "zones")
        message = f"the reservation of {size} needs a zone, and no list has one in {environment.region}"
        # A zone that Google's list lacks is TPU022, as the region was TPU021.
        allowance = ", and allow TPU022" if choice.slice.zones else ""
        hint = f"add {dotted((*path, size))}, for example {environment.region}-a{allowance}"
        details = (f"the name of a reservation: {_RESERVATION_NAME}",)
        yield Finding.of("TPU005", message, project.document.key_location(path), help=hint, details=details)


def _class_and_capacity(project: Project, choices: Sequence[_Choice]) -> Iterator[Finding]:
    """Yield an error for a compute class beside a capacity: the class decides how nodes are obtained."""
    for choice in choices:
        if not choice.settings.layers.find("capacity"):
            continue
        path = choice.settings.source(("targets", "gke", "compute_class"))
        message = f"{dotted(path)} and {dotted(choice.path)} exclude each other: the class decides how nodes are bought"
        yield Finding.of(
            "TPU054",
            message,
            project.document.value_location(path),
            help=f"delete {dotted(choice.path)}, or the compute class",
            details=(f"see {_CLASSES}",),
            related=((project.document.value_location(choice.path), "the capacity"),),
        )


_RULES: Final[Sequence[Callable[[Project, Sequence[_Choice]], Iterator[Finding]]]] = (
    _verdicts,
    _flex_start_zones,
    _flex_start_duration,
    _spot_without_checkpoints,
    _restarts_of_spot,
    _reservations_without_zone,
)


def _sizes(choices: Sequence[_Choice]) -> str:
    return listed(list(dict.fromkeys(choice.slice.size for choice in choices)), last=" and ")


def _finding(project: Project, id_: str, message: str, path: KeyPath, hint: str, details: Sequence[str]) -> Finding:
    return Finding.of(id_, message, project.document.value_location(path), help=hint, details=details)
