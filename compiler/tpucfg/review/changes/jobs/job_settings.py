"""The layered settings of a job that a review compares: capacity, secrets, mounts, limits, and those of its target."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.job_data import capacity_text
from tpucfg.plan import Job
from tpucfg.spec.layers import LAYERED
from tpucfg.spec.settings import DEFAULT_PYTHON, Secret
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

READ_ONLY: Final = "read-only"
"""The text of a disk that the program cannot change."""
ADDRESSES: Final = "external addresses"
"""The subject of the addresses by which the internet reaches hosts."""
FIT_STEP: Final = "step to compile"
"""The subject of the function that `tpucfg fit` compiles."""


class JobSetting(NamedTuple):
    """One value of a job's settings."""

    subject: str
    label: str
    """The name of one of several such settings; empty if a job has only one."""
    text: str
    path: KeyPath
    """Its path in the layered settings."""


def job_settings(job: Job) -> dict[tuple[str, str], JobSetting]:
    """Return the settings by subject and label."""
    return {(setting.subject, setting.label): setting for read in _READERS for setting in read(job)}


def is_compared(detail: str) -> bool:
    """Return True if the settings have the key of the spec that is the origin of a field."""
    return detail in _COMPARED or (detail.startswith("targets.") and detail.rpartition(".")[2] in _OPTIONS)


def layer_of(job: Job, path: KeyPath) -> str:
    """Return the layer that sets a value, in dotted form; empty for the top of the spec."""
    source = job.settings.source(path)
    end = next((index for index, step in enumerate(source) if step in LAYERED), len(source))
    return dotted(source[:end], "")


def is_set(job: Job, path: KeyPath) -> bool:
    """Return True if a layer of the spec sets a value of a job, which is no default then."""
    return job.settings.layers.find(*map(str, path)) is not None


def _capacity(job: Job) -> Iterator[JobSetting]:
    yield JobSetting("capacity", "", capacity_text(job.capacity), ("capacity",))


def _secrets(job: Job) -> Iterator[JobSetting]:
    for secret in job.secrets:
        text = _reference(secret, job.environment.project)
        yield JobSetting("secret", secret.variable, text, ("trainer", "secrets", secret.variable))


def _reference(secret: Secret, project: str) -> str:
    """Return the reference to a secret as short as the spec may write it in an environment of a Google project."""
    if secret.project in (None, project):
        return f"{secret.name}/{secret.version}"
    return f"projects/{secret.project}/secrets/{secret.name}/versions/{secret.version}"


def _mounts(job: Job) -> Iterator[JobSetting]:
    # With placeholders, so that the same mount of several environments is one sentence.
    for mount in job.settings.trainer.mounts:
        yield JobSetting("mount", mount.path, mount.source, ("trainer", "mounts", mount.path))


def _xla_flags(job: Job) -> Iterator[JobSetting]:
    generation = job.slice.generation
    for flag in job.settings.trainer.xla_flags.get(generation, ()):
        name, _, value = flag.partition("=")
        yield JobSetting("XLA flag", name, value, ("trainer", "xla_flags", generation))


def _limits(job: Job) -> Iterator[JobSetting]:
    if job.restarts is not None:
        yield JobSetting("restarts", "", str(job.restarts), ("trainer", "restarts"))
    if job.max_run_duration:
        yield JobSetting("maximum run duration", "", job.max_run_duration.text, ("trainer", "max_run_duration"))


def _fit_step(job: Job) -> Iterator[JobSetting]:
    if fit := job.settings.trainer.fit:
        yield JobSetting(FIT_STEP, "", fit.step, ("trainer", "fit", "step"))
        if fit.python != DEFAULT_PYTHON:
            yield JobSetting("Python of the compiled step", "", fit.python, ("trainer", "fit", "python"))


def _options(job: Job) -> Iterator[JobSetting]:
    """Yield the target's own settings that `_OPTIONS` names; each item of a list is a setting of its own."""
    defaults = {key: _DEFAULTS[key] for key in TARGET_FACTS[job.target].host_settings if key in _DEFAULTS}
    for key, value in {**defaults, **job.options}.items():
        path = ("targets", job.target, key)
        if value == _SAME_AS_UNSET.get(key):
            continue
        if key in _OPTIONS and isinstance(value, list):
            for item in value:
                label, text = _item(item)
                yield JobSetting(_OPTIONS[key], label, text, path)
        elif key in _OPTIONS and value is not None:
            yield JobSetting(_OPTIONS[key], "", _text(value), path)


def _item(item: Any) -> tuple[str, str]:
    """Return the name and the text of an item of a list: a name, or a disk."""
    if isinstance(item, dict):
        return str(item["source"]), READ_ONLY if item.get("read_only", True) else "read-write"
    return str(item), ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_READERS: Final = (_capacity, _secrets, _mounts, _xla_flags, _limits, _fit_step, _options)
_OPTIONS: Final[Mapping[str, str]] = {
    "queue": "queue",
    "priority": "priority class",
    "compute_class": "compute class",
    "topology_aware": "topology-aware placement",
    "placement_policy": "placement policy",
    "image_pull_secrets": "image pull secret",
    "network": "network",
    "subnetwork": "subnetwork",
    "external_ips": ADDRESSES,
    "tags": "network tag",
    "data_disks": "data disk",
    "disk_gb": "boot disk (GB)",
}
"""The settings of targets that are compared here, with their subjects; the others are fields of the config."""
_DEFAULTS: Final[Mapping[str, object]] = {"external_ips": True}
"""The values of settings that a host has even if the spec does not set them."""
_SAME_AS_UNSET: Final[Mapping[str, object]] = {"network": "default"}
"""The values of settings that mean the same as none."""
_COMPARED: Final = frozenset(
    {"capacity", "trainer.secrets", "trainer.mounts", "trainer.restarts", "trainer.max_run_duration"}
)
"""The keys of the spec that are compared here, besides `_OPTIONS`."""
