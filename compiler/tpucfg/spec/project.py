"""The spec as immutable values, the input of the rest of the compiler.

Numbers that reach the trainer keep their source text: `1e-3` stays `1e-3`.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Final, Literal, get_args

from tpucfg.findings import Allowance
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import sort_keys, values_at
from tpucfg.schemas import load_schema
from tpucfg.spec.layers import layer_scope
from tpucfg.spec.presets import PRESETS, Preset
from tpucfg.spec.settings import CapacityKind, Settings, resolve_settings
from tpucfg.text_format import dotted
from tpucfg.yamldoc import Document, KeyPath

LearningRateRule = Literal["keep", "linear", "sqrt"]
BatchRule = Literal["per_core", "keep"]


class Number(NamedTuple):
    """The exact value of a number, and its text in the spec."""

    value: Fraction
    text: str

    @classmethod
    def read(cls, text: str) -> "Number":
        """Parse a number of the spec."""
        # Fraction reads decimal forms only; YAML 1.2 has `0x1F` and `0o17` as well.
        is_decimal = "x" not in text and "o" not in text
        return cls(Fraction(text) if is_decimal else Fraction(int(text, 0)), text)


Prices = Mapping[str, Mapping[CapacityKind, Number]]
"""USD for a chip hour, by generation and capacity."""


class StepSetting(NamedTuple):
    """A figure counted in steps."""

    value: int
    scaled: bool = True
    """False if it stays on every rung."""


class Training(NamedTuple):
    """The settings that change from rung to rung, as they were tuned on one size."""

    tuned_on: str
    batch_size: int
    """The examples of one optimizer step, over all devices of `tuned_on`."""
    per_device_batch_size: Number | None
    """The examples of one device and micro-batch, from which `batch_size` was worked out; None if the spec sets the
    batch itself."""
    batch_rule: BatchRule
    grad_accum: int | None
    """Micro-batches of one optimizer step; None for 1, without a flag."""
    model_parallel: int
    """JAX devices that share one copy of the batch."""
    sequence_length: int | None
    """Tokens of one example."""
    train_steps: int | None
    train_tokens: int | None
    epochs: Number | None
    """One of steps, tokens and epochs is set; the schema refuses more."""
    learning_rate: Number | None
    learning_rate_rule: LearningRateRule
    steps: Mapping[str, StepSetting]
    """Every other setting that is counted in steps."""
    flags: Mapping[str, str | None]
    """The program's flag for a figure, by the preset and the spec; None omits it."""
    preset: Preset | None
    """The framework of the program; None if the spec names none."""

    @property
    def batch_key(self) -> str:
        """The key of `training` that sets the batch."""
        return "per_device_batch_size" if self.per_device_batch_size else "batch_size"


def overridable() -> tuple[str, ...]:
    """Return the keys of an override, besides the keys of training.steps."""
    return tuple(load_schema("tpucfg")["$defs"]["override"]["properties"])


class Override(NamedTuple):
    """The settings of one rung that differ from the rest of the ladder."""

    batch_size: int | None = None
    per_device_batch_size: Number | None = None
    """The examples of one device and micro-batch, from which `batch_size` was worked out."""
    learning_rate: Number | None = None
    grad_accum: int | None = None
    model_parallel: int | None = None
    machine: str | None = None
    topology: str | None = None
    steps: Mapping[str, int] | None = None
    fallback: tuple[str, ...] = ()
    """Sizes of the ladder on which a run may go on where this one is not to be had."""


class Cluster(NamedTuple):
    """A cluster of Google Kubernetes Engine."""

    project: str
    location: str
    """A region, or a zone."""
    name: str

    @classmethod
    def read(cls, name: str) -> "Cluster":
        """Parse `projects/P/locations/L/clusters/C`."""
        _, project, _, location, _, cluster = name.split("/")
        return cls(project, location, cluster)

    @classmethod
    def of_context(cls, context: str | None) -> "Cluster | None":
        """Return the cluster of a kubectl context that gcloud named: `gke_P_L_C`; None for another context.

        https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-access-for-kubectl
        """
        prefix, *parts = (context or "").split("_")
        return cls(*parts) if prefix == "gke" and len(parts) == _CONTEXT_PARTS else None

    @property
    def path(self) -> str:
        """The name of the cluster as Google's API writes it."""
        return f"projects/{self.project}/locations/{self.location}/clusters/{self.name}"

    @property
    def context(self) -> str:
        """The kubectl context as gcloud names it."""
        return f"gke_{self.project}_{self.location}_{self.name}"


_CONTEXT_PARTS: Final = 3
SIZE_LABEL: Final = "tpucfg-size"
RESERVED_LABELS: Final = ("tpucfg-project", "tpucfg-environment", SIZE_LABEL, "tpucfg-run")
"""The labels that tpucfg sets itself: the first two on an environment's bucket, all of them on a job."""


SOFT_DELETE_DAYS: Final = 7
"""Days for which a deleted object can be restored, and is billed: Google's default, which the stack sets explicitly."""
SOFT_DELETE_DAYS_PROTECTED: Final = 30
"""Days for which a deleted object of a protected environment can be restored."""


class Environment(NamedTuple):
    """A Google project and a region, and the ladder that runs there."""

    name: str
    project: str
    region: str
    target: str
    sizes: tuple[str, ...]
    sizes_path: KeyPath
    """The path of the ladder: in the environment, or at the top level."""
    bucket: str | None
    """The bucket's name if the spec sets one."""
    creates_bucket: bool
    """False if the bucket exists already, and the stack only grants access to it."""
    kms_key: str | None
    """The Cloud KMS key that encrypts the bucket; None for Google's own."""
    soft_delete_days: int | None
    """Days for which deleted objects can be restored; None for the stack's default."""
    reads: Mapping[str, str]
    """The locations of other buckets that jobs read, by URL."""
    grants_images: bool
    """True if the stack grants access to the images' repositories."""
    zones: Mapping[str, str]
    labels: Mapping[str, str]
    protect: bool
    keep_data: bool
    cluster: Cluster | None
    """The cluster that the spec or a context by gcloud names; None if neither does."""
    kube_context: str | None
    """The kubectl context, by default the one that gcloud gives the cluster."""

    @property
    def path(self) -> KeyPath:
        """The path of the environment in the spec."""
        return ("environments", self.name)

    @property
    def deleted_days(self) -> int:
        """Days for which the bucket keeps deleted objects; 0 if data need not be kept, as each would be billed."""
        if self.soft_delete_days is not None:
            return self.soft_delete_days
        if self.protect:
            return SOFT_DELETE_DAYS_PROTECTED
        return SOFT_DELETE_DAYS if self.keep_data else 0


class Probe(NamedTuple):
    """The setting of probes; their arguments are a layer."""

    steps: int
    """The steps of a probe on every rung."""


class Gate(NamedTuple):
    """The conditions for starting a rung."""

    min_scaling_efficiency: float | None = None
    metric: str | None = None
    goal: str | None = None
    max_drop: float | None = None
    fit: bool = False
    """True if the rung's own training step has to be known to fit."""
    same_image: bool = False
    """True if only records of the job's own image count."""
    max_usd: float | None = None
    """The most that what is started may cost; None for no limit."""

    @property
    def for_probes(self) -> "Gate":
        """The conditions for starting a probe: the final metric is that of a whole run."""
        return self._replace(metric=None, goal=None, max_drop=None)

    @property
    def measures(self) -> bool:
        """True if the rung below has to be recorded, with the throughput or the metric that the gate compares."""
        return self.min_scaling_efficiency is not None or self.metric is not None or self.same_image


class Project(NamedTuple):
    """One spec, with its document for the locations of findings."""

    name: str
    environments: Mapping[str, Environment]
    settings: Mapping[tuple[str, str], Settings]
    """The layered settings by environment and size. Without the layers of a size, the size is ""; at the top of the
    spec, the environment is "" too."""
    training: Training
    overrides: Mapping[str, Override]
    probe: Probe | None
    """None for a spec without the section."""
    gate: Gate | None
    prices: Prices
    allow: Mapping[str, Allowance]
    """The reasons for which findings are allowed, by id."""
    document: Document
    is_probe: bool = False
    """True if the settings have the arguments of probes."""

    @property
    def broken(self) -> frozenset[str]:
        """The sections with errors, which are replaced by stand-ins: such a project has findings, but no jobs."""
        return self.document.broken

    def distinct_settings(self) -> Iterable[Settings]:
        """Return the settings of all jobs, each once: environments and sizes with equal layers share one."""
        by_layers = {each.layer_paths: each for (_, size), each in self.settings.items() if size}
        return by_layers.values()

    def users_of(self, layer: KeyPath) -> list[Environment]:
        """Return the environments in whose jobs the layer at a path takes part."""
        name, size = layer_scope(layer)
        return [
            environment
            for environment in self.environments.values()
            if name in (None, environment.name) and (size is None or size in environment.sizes)
        ]

    def with_probe_args(self) -> "Project":
        """Return the project with the arguments of probes in its settings."""
        settings = resolve_settings(self.document, self.training.preset, is_probe=True)
        return self._replace(settings=settings, is_probe=True)

    @property
    def base(self) -> Settings:
        """The layered settings at the top of the spec."""
        return self.settings["", ""]


def build_project(document: Document) -> Project:
    """Return the project of a valid document, in which stand-ins may have replaced broken sections.

    The order of keys has no meaning in a spec, so it is normalized here; only args are an ordered list of flags.
    """
    data = document.data
    training = _training(document, data["training"])
    return Project(
        name=data["name"],
        environments={
            name: _environment(name, value, data)
            for name, value in sorted(data["environments"].items())
        },
        settings=resolve_settings(document, training.preset),
        training=training,
        overrides={
            size: _override(document, training, size, value)
            for size, value in data.get("overrides", {}).items()
        },
        probe=Probe(int(data["probe"]["steps"])) if "probe" in data else None,
        gate=Gate(**data["gate"]) if data.get("gate") else None,
        prices={
            name: _prices(document, name, value) for name, value in data.get("prices", {}).items()
        },
        allow={id_: _allowance(document, value) for id_, value in data.get("allow", {}).items()},
        document=document,
    )


def _allowance(document: Document, value: Any) -> Allowance:
    if isinstance(value, str):
        return Allowance(value)
    texts = listed_paths(value)
    # As messages write them: a long path without its start.
    paths = [path for path, _ in values_at(document.data, "**") if path and dotted(path) in texts]
    return Allowance(value["reason"], tuple(document.member_location(path) for path in paths))


def listed_paths(allowed: Mapping[str, Any]) -> list[str]:
    """Return the paths of an entry of `allow` that holds for some places."""
    path = allowed["path"]
    return [path] if isinstance(path, str) else path


def _environment(name: str, value: Mapping[str, Any], data: Mapping[str, Any]) -> Environment:
    bucket = value.get("bucket", {})
    bucket = {"name": bucket} if isinstance(bucket, str) else bucket
    context = value.get("kube_context")
    cluster = Cluster.read(value["cluster"]) if "cluster" in value else Cluster.of_context(context)
    return Environment(
        name=name,
        project=value["project"],
        region=value["region"],
        target=value.get("target", data["target"]),
        sizes=tuple(value["sizes"] if "sizes" in value else data["sizes"]),
        sizes_path=("environments", name, "sizes") if "sizes" in value else ("sizes",),
        bucket=bucket.get("name"),
        creates_bucket=bucket.get("create", True),
        kms_key=value.get("kms_key"),
        soft_delete_days=_count(value, "soft_delete_days"),
        reads=sort_keys(value.get("reads", {})),
        grants_images=value.get("images", {}).get("grant", True),
        zones=value.get("zones", {}),
        labels=sort_keys(value.get("labels", {})),
        protect=value.get("protect", False),
        keep_data=value.get("keep_data", True),
        cluster=cluster,
        kube_context=context or (cluster.context if cluster else None),
    )


def _prices(document: Document, generation: str, value: Any) -> Mapping[CapacityKind, Number]:
    path = ("prices", generation)
    if isinstance(value, dict):
        kinds: tuple[CapacityKind, ...] = tuple(value)
        return {kind: _number(document, (*path, kind)) for kind in kinds}
    return dict.fromkeys(get_args(CapacityKind), _number(document, path))


def _training(document: Document, value: Mapping[str, Any]) -> Training:
    per_device = _optional_number(document, ("training", "per_device_batch_size"))
    flags = value.get("flags", {})
    preset = PRESETS.get(flags if isinstance(flags, str) else flags.get("preset", ""))
    own = (
        {}
        if isinstance(flags, str)
        else {figure: flag for figure, flag in flags.items() if figure != "preset"}
    )
    return Training(
        tuned_on=value["tuned_on"],
        batch_size=_batch_size(value, value["tuned_on"], per_device, value.get("grad_accum", 1))
        or 1,
        per_device_batch_size=per_device,
        batch_rule=value.get("batch_rule", "per_core"),
        grad_accum=_count(value, "grad_accum"),
        model_parallel=_count(value, "model_parallel") or 1,
        sequence_length=_count(value, "sequence_length"),
        train_steps=_count(value, "train_steps"),
        train_tokens=_count(value, "train_tokens"),
        epochs=_optional_number(document, ("training", "epochs")),
        learning_rate=_optional_number(document, ("training", "learning_rate")),
        learning_rate_rule=value.get("learning_rate_rule", "keep"),
        steps={
            key: _step_setting(setting) for key, setting in sorted(value.get("steps", {}).items())
        },
        flags={**(preset.flags if preset else {}), **own},
        preset=preset,
    )


def _batch_size(
    value: Mapping[str, Any], size: str, per_device: Number | None, grad_accum: int
) -> int | None:
    """Return the global batch that a mapping of the spec sets for a size; None if it sets none.

    A batch that is no whole number is rounded down (TPU040), and that of an unknown size is 1 (TPU020).
    """
    if per_device is None:
        return _count(value, "batch_size")
    devices = _devices(size)
    return max(1, int(per_device.value * devices) * int(grad_accum)) if devices else 1


@cache
def _devices(size: str) -> int:
    """Return the JAX devices of a size; 0 for an unknown one."""
    # Imported here, because most specs set the global batch.
    from tpucfg.catalog import Catalog

    slice_ = Catalog().find(size)
    return slice_.devices if slice_ else 0


def _count(value: Mapping[str, Any], key: str) -> int | None:
    # int(), because the schema accepts 4e3 as a whole number, which YAML reads as a float.
    return int(value[key]) if key in value else None


def _step_setting(value: Any) -> StepSetting:
    count, scaled = (
        (value["value"], value.get("scale", True)) if isinstance(value, dict) else (value, True)
    )
    return StepSetting(int(count), scaled)


def _override(
    document: Document, training: Training, size: str, value: Mapping[str, Any]
) -> Override:
    path, known = ("overrides", size), overridable()
    per_device = _optional_number(document, (*path, "per_device_batch_size"))
    grad_accum = value.get("grad_accum", training.grad_accum or 1)
    return Override(
        batch_size=_batch_size(value, size, per_device, grad_accum),
        per_device_batch_size=per_device,
        learning_rate=_optional_number(document, (*path, "learning_rate")),
        grad_accum=_count(value, "grad_accum"),
        model_parallel=_count(value, "model_parallel"),
        machine=value.get("machine"),
        topology=value.get("topology"),
        steps={key: int(count) for key, count in value.items() if key not in known},
        fallback=tuple(value.get("fallback", ())),
    )


def _number(document: Document, path: KeyPath) -> Number:
    return Number.read(document.source_text(path))


def _optional_number(document: Document, path: KeyPath) -> Number | None:
    return _number(document, path) if document.node(path) else None
