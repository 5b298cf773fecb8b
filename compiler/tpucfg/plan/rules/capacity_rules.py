"""Rules about capacity: what the target refuses, what Google's pages leave open, and what a kind of capacity needs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tpucfg.catalog import TARGET_FACTS, Catalog, Slice
from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import grouped
from tpucfg.plan.job import compute_class
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
from tpucfg.plan.rules.scaling_warnings import names_checkpoints
from tpucfg.plan.rung import slice_in_force
from tpucfg.plan.selection import SelectedSizes
from tpucfg.spec import CapacityKind, Environment, Project, Settings
from tpucfg.spec.sections import compares
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import KeyPath

_RESERVATION_NAME: Final = "https://cloud.google.com/vertex-ai/docs/training/use-reservations"
_PREEMPTION: Final = "https://cloud.google.com/compute/docs/instances/spot"
_SUSPENDED: Final = "https://cloud.google.com/tpu/docs/spot"
_CLASSES: Final = (
    "https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes"
)
_FOLDERS: Final = ("${job_dir}", "${run_dir}")
_UNCERTAIN_ON_DEMAND: Final = {
    row.target for row in CAPACITY_TABLE if (row.kind, row.level) == ("on-demand", "warning")
}
"""The targets on which even on-demand capacity is left open for some sizes."""
_FLEX_START_PAGES: Final = {
    "gke": (f"the maximum: {GKE_FLEX}", f"both limits: {CLUSTER_AUTOSCALER}"),
    "compute-engine": (f"both limits: {COMPUTE_FLEX}",),
}


class _CapacityChoice(NamedTuple):
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
    def place(self) -> str:
        """The zone that the spec names for the size, or else the region."""
        return self.environment.zones.get(self.slice.size) or self.environment.region

    @property
    def has_class(self) -> bool:
        """True if a compute class of GKE decides how nodes are bought."""
        return compute_class(self.target, self.settings) is not None


@compares("target", "environments", "capacity", "trainer", "training", "overrides", "targets")
def capacity_findings(
    project: Project, catalog: Catalog, selected: SelectedSizes
) -> Iterator[Finding]:
    """Yield the findings about the capacity of the selected sizes."""
    every_choice = tuple(_choices(project, catalog, selected))
    yield from _class_and_capacity(project, [choice for choice in every_choice if choice.has_class])
    choices = [choice for choice in every_choice if not choice.has_class]
    refused = [choice for choice in choices if choice.row.level == "error"]
    yield from _refusals(project, choices, refused)
    # Another finding about a layer whose capacity is refused for some size would repeat the mistake.
    refused_paths = {choice.path for choice in refused}
    for rule in _RULES:
        yield from rule(project, [choice for choice in choices if choice.path not in refused_paths])


def _choices(
    project: Project, catalog: Catalog, selected: SelectedSizes
) -> Iterator[_CapacityChoice]:
    for environment, sizes in selected:
        target = environment.target
        for size in sizes:
            settings = project.settings[environment.name, size]
            # Most rules do not apply to on-demand without a class, which is the capacity of most specs.
            if (
                settings.capacity.kind == "on-demand"
                and not compute_class(target, settings)
                and target not in _UNCERTAIN_ON_DEMAND
            ):
                continue
            slice_ = catalog.find(size)
            # A size that the target does not support at all is TPU024.
            if slice_ and target in slice_.targets:
                slice_ = slice_in_force(project, target, slice_)
                row = capacity_verdict(target, slice_, settings.capacity.kind)
                yield _CapacityChoice(
                    environment, slice_, settings, settings.source(("capacity",)), row
                )


def _grouped(
    choices: Sequence[_CapacityChoice], key: Callable[[_CapacityChoice], object]
) -> Iterator[list[_CapacityChoice]]:
    """Yield the choices that share a key and the layer that sets their capacity, so that one mistake is one finding."""
    yield from grouped(
        ((choice.path, choice.target, key(choice)), choice) for choice in choices
    ).values()


# What the table decides


def _refusals(
    project: Project, choices: Sequence[_CapacityChoice], refused: Sequence[_CapacityChoice]
) -> Iterator[Finding]:
    """Yield an error for each row of the table by which a target refuses sizes."""
    for group in _grouped(refused, lambda choice: choice.row):
        first, row = group[0], group[0].row
        message = (
            f"{first.target} does not take {_sizes(group)} with capacity {first.kind}: {row.text}"
        )
        hint = f"set {dotted(_edit_path(project, choices, group))} to on-demand"
        details = (*_sources(row), *_other_targets(group))
        yield project.document.finding("TPU055", message, first.path, help=hint, details=details)


def _doubts(project: Project, choices: Sequence[_CapacityChoice]) -> Iterator[Finding]:
    """Yield a warning for each row of the table that leaves open if a target takes sizes."""
    groups = _grouped(
        [choice for choice in choices if choice.row.level == "warning"], lambda choice: choice.row
    )
    quoted: dict[str, KeyPath] = {}
    for group in sorted(
        groups, key=lambda group: project.document.value_location(_shown_path(project, group[0]))
    ):
        row, kind, path = group[0].row, group[0].kind, _shown_path(project, group[0])
        # A quotation of several lines is read once, at the first place.
        is_first = quoted.setdefault(row.text, path) == path
        reason = row.text if is_first else f"{dotted(quoted[row.text])} has the reason"
        message = f"{group[0].target} may refuse {_sizes(group)} with capacity {kind}: {reason}"
        hint = f"{_other_capacity(project, choices, group)}, or allow TPU056 with your reason"
        yield project.document.finding("TPU056", message, path, help=hint, details=_sources(row))


def _other_capacity(
    project: Project, choices: Sequence[_CapacityChoice], group: Sequence[_CapacityChoice]
) -> str:
    """Return the edit that sets a capacity without doubt: flex-start with its duration, or on-demand."""
    path = _edit_path(project, choices, group)
    if group[0].target not in _UNCERTAIN_ON_DEMAND:
        return f"set {dotted(path)} to on-demand"
    durations = [choice.settings.trainer.max_run_duration for choice in group]
    is_valid = all(each and each.seconds in FLEX_START_SECONDS for each in durations)
    return f"set {dotted(path)} to flex-start" + (
        "" if is_valid else f" and {_duration_edit(path)}"
    )


def _duration_edit(capacity: KeyPath) -> str:
    """Return the edit that limits a run in the layer of its capacity, so that no other run is limited."""
    return f"{dotted((*capacity[:-1], 'trainer', 'max_run_duration'))} to 12h"


def _shown_path(project: Project, choice: _CapacityChoice) -> KeyPath:
    """Return the path of the capacity, or of the size in its ladder if the spec sets no capacity."""
    environment = choice.environment
    is_set = project.document.node(choice.path) is not None
    return (
        choice.path
        if is_set
        else (*environment.sizes_path, environment.sizes.index(choice.slice.size))
    )


def _edit_path(
    project: Project, choices: Sequence[_CapacityChoice], group: Sequence[_CapacityChoice]
) -> KeyPath:
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


def _other_targets(group: Sequence[_CapacityChoice]) -> list[str]:
    """Return the targets that take all of the sizes with this capacity, if there are any."""
    kind, names = group[0].kind, group[0].slice.targets
    others = [
        name
        for name in names
        if all(
            name in choice.slice.targets
            and capacity_verdict(name, choice.slice, kind).level == "allowed"
            for choice in group
        )
    ]
    return (
        [f"targets that take {_sizes(group)} with capacity {kind}: {listed(others)}"]
        if others
        else []
    )


def _sources(row: CapacityRow) -> tuple[str, ...]:
    return tuple(f"see {url}" for url in row.sources)


# What a kind of capacity needs


def _flex_start_zones(project: Project, choices: Sequence[_CapacityChoice]) -> Iterator[Finding]:
    """Yield a warning for flex-start on gke outside the zones of GKE's page."""
    flexible = [
        choice for choice in choices if (choice.target, choice.kind) == ("gke", "flex-start")
    ]
    for group in _grouped(
        flexible, lambda choice: (choice.environment.name, choice.slice.generation, choice.place)
    ):
        zones, place = FLEX_START_ZONES.get(group[0].slice.generation, ()), group[0].place
        if not zones or any(place in (zone, zone.rpartition("-")[0]) for zone in zones):
            continue
        message = f"GKE's page on flex-start does not list {place} for {_sizes(group)}"
        hint = f"set {dotted(_edit_path(project, choices, group))} to on-demand, or allow TPU056 with your reason"
        details = (f"it lists {listed(zones, last=' and ')}: {GKE_FLEX}",)
        yield project.document.finding("TPU056", message, group[0].path, help=hint, details=details)


def _flex_start_duration(project: Project, choices: Sequence[_CapacityChoice]) -> Iterator[Finding]:
    """Yield an error for flex-start without a run duration, or with one that it does not accept."""
    for choice in choices:
        path, duration = choice.path, choice.settings.trainer.max_run_duration
        if choice.kind != "flex-start" or (duration and duration.seconds in FLEX_START_SECONDS):
            continue
        message = "capacity flex-start needs trainer.max_run_duration: the machines are provided for that time"
        hint = f"set {_duration_edit(path)}"
        if duration:
            path = choice.settings.source(("trainer", "max_run_duration"))
            message = (
                f"{dotted(path)} is {duration.text}, and flex-start takes 10 minutes to 7 days"
            )
            hint = f"set {dotted(path)} to {'10m' if duration.seconds < FLEX_START_SECONDS[0] else '7d'}"
        details = _FLEX_START_PAGES.get(choice.target, ())
        yield project.document.finding("TPU057", message, path, help=hint, details=details)


def _spot_without_checkpoints(
    project: Project, choices: Sequence[_CapacityChoice]
) -> Iterator[Finding]:
    """Yield a warning for spot machines if nothing in the spec shows that the program writes checkpoints."""
    lost = [
        each
        for each in choices
        if each.kind == "spot" and not writes_checkpoints(project, each.settings)
    ]
    for group in _grouped(lost, lambda _: None):
        message = (
            f"{_sizes(group)} can be preempted at any time, and nothing in the spec shows that the program "
            "writes checkpoints: it would start from the beginning"
        )
        hint = "pass the job's folder to the program, such as trainer.args.model_dir: ${job_dir}, or allow TPU058"
        details = (f"see {_PREEMPTION}",)
        yield project.document.finding("TPU058", message, group[0].path, help=hint, details=details)


def writes_checkpoints(project: Project, settings: Settings) -> bool:
    """Return True if a flag or a figure is named after checkpoints, or the program is given the job's own folder."""
    trainer = settings.trainer
    names = (
        *project.training.steps,
        *(arg.name for arg in trainer.args if arg.values[:1] != ("false",)),
        *(key for key, _ in trainer.env),
    )
    texts = (*trainer.texts, *(mount.source for mount in trainer.mounts))
    return any(map(names_checkpoints, names)) or any(
        folder in text for text in texts for folder in _FOLDERS
    )


def _restarts_of_spot(project: Project, choices: Sequence[_CapacityChoice]) -> Iterator[Finding]:
    """Yield a warning for restarts on spot machines of cloud-tpu, whose request is suspended by a preemption."""
    on_spot = (
        choice for choice in choices if (choice.target, choice.kind) == ("cloud-tpu", "spot")
    )
    held = [choice for choice in on_spot if choice.settings.trainer.restarts]
    for group in _grouped(held, lambda choice: choice.settings.source(("trainer", "restarts"))):
        path = group[0].settings.source(("trainer", "restarts"))
        message = (
            f"{dotted(path)} restarts the program after a failure, and not after a preemption: cloud-tpu suspends the "
            f"request of {_sizes(group)}, and it keeps its id"
        )
        hint = "run the delete and the start command of tpucfg submit again after a preemption, and allow TPU127"
        yield project.document.finding(
            "TPU127", message, path, help=hint, details=(f"see {_SUSPENDED}",)
        )


def _reservations_without_zone(
    project: Project, choices: Sequence[_CapacityChoice]
) -> Iterator[Finding]:
    """Yield an error for a reservation without a full name: no list has a zone for the size."""
    for choice in choices:
        environment, size = choice.environment, choice.slice.size
        if choice.kind != "reservation" or not TARGET_FACTS[choice.target].reservation_has_zone:
            continue
        if zone_of(environment, choice.slice) or (
            choice.slice.zones and "TPU021" not in project.allow
        ):
            continue  # TPU021 reports that the region does not offer the size
        path = (*environment.path, "zones")
        message = (
            f"the reservation of {size} needs a zone, and no list has one in {environment.region}"
        )
        # A zone that Google's list lacks is TPU022, as the region was TPU021.
        allowance = ", and allow TPU022" if choice.slice.zones else ""
        hint = f"add {dotted((*path, size))}, for example {environment.region}-a{allowance}"
        details = (f"the name of a reservation: {_RESERVATION_NAME}",)
        yield project.document.finding(
            "TPU005", message, path, at_key=True, help=hint, details=details
        )


def _class_and_capacity(project: Project, choices: Sequence[_CapacityChoice]) -> Iterator[Finding]:
    """Yield an error for a compute class beside a capacity: the class decides how nodes are obtained."""
    for choice in choices:
        if not choice.settings.layers.find("capacity"):
            continue
        path = choice.settings.source(("targets", "gke", "compute_class"))
        message = f"{dotted(path)} and {dotted(choice.path)} exclude each other: the class decides how nodes are bought"
        hint, details = f"delete {dotted(choice.path)}, or the compute class", (f"see {_CLASSES}",)
        related = ((project.document.value_location(choice.path), "the capacity"),)
        yield project.document.finding(
            "TPU054", message, path, help=hint, details=details, related=related
        )


_RULES: Final[Sequence[Callable[[Project, Sequence[_CapacityChoice]], Iterator[Finding]]]] = (
    _doubts,
    _flex_start_zones,
    _flex_start_duration,
    _spot_without_checkpoints,
    _restarts_of_spot,
    _reservations_without_zone,
)


def _sizes(choices: Sequence[_CapacityChoice]) -> str:
    return listed(list(dict.fromkeys(choice.slice.size for choice in choices)), last=" and ")
