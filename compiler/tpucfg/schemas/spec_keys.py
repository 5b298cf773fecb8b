"""The places of unknown keys of a spec: keys of other layers and sections, former keys, and names of other tools.

Every help line is an edit that works: it names a place that takes the key and does not have it yet.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tpucfg.schemas.moved_keys import UnknownKey, environment_places, moved_key, step_setting, value_at
from tpucfg.text_format import dotted, quote_key, yaml_example
from tpucfg.yamldoc.document import KeyPath

_TOP: Final[KeyPath] = ()
_CAPACITY_NAMES: Final = {
    "spot": ("preemptible", "preemptable", "spotvm"),
    "flex-start": ("flexstart", "flex", "dws", "dwsflexstart", "dynamicworkloadscheduler"),
    "on-demand": ("ondemand", "standard", "regular"),
    "reservation": ("reserved", "reserve", "specificreservation"),
}
"""Other names of each capacity, in Google's APIs and in former keys, in lower-case letters."""
TARGET_NAMES: Final = {
    "vertex-ai": ("vertex", "agentplatform", "gemini", "geminienterprise", "geminienterpriseagentplatform"),
    "cloud-tpu": ("tpu", "tpuvm", "cloudtpuvm", "queuedresource", "queuedresources"),
    "compute-engine": ("gce", "googlecomputeengine", "compute", "mig", "managedinstancegroup", "instancegroupmanager"),
    "gke": ("kubernetes", "k8s", "googlekubernetesengine", "kueue", "jobset", "xpk"),
}
"""Other names of each target, in lower-case letters; Vertex AI has a new name: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/overview."""
_RESERVATION: Final = re.compile(r"projects/([^/]+)/(?:zones|locations)/[^/]+/reservations/([^/]+)")
"""A reservation in the form of an API, which has a zone that the spec works out itself."""
_RESERVATION_TEXT: Final = re.compile(
    r"(?:(projects/[a-z0-9][-a-z0-9.:]{3,62}/)(?:zones/[^/]+/)?)?(reservations/[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
)
"""A reservation where a word is taken, with its project and zone or without."""
_SECONDS: Final = re.compile(r"[1-9][0-9]{0,8}[smhd]?")


class _Replacement(NamedTuple):
    """The layered key that has the meaning of another key."""

    section: KeyPath
    """Its section, in the layer of the other key."""
    key: str
    convert: Callable[[str, Any], Any]
    """Returns its value for the other key and value; None if the other key is to be deleted."""


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _meant(names: Mapping[str, tuple[str, ...]], text: str) -> str | None:
    """Return the name that has a text as another form or name."""
    letters = _letters(text)
    return next((name for name, others in names.items() if letters in (_letters(name), *others)), None)


def _capacity_word(text: str) -> str | None:
    word = _meant(_CAPACITY_NAMES, text)
    return None if word == "reservation" else word


def _capacity(key: str, value: Any) -> Any:
    text = key if isinstance(value, bool) else str(value)
    return (_capacity_word(text) or "spot") if value not in (False, None) else None


def _reservation(_: str, value: Any) -> Any:
    if not isinstance(value, str) or not value:
        return None
    match = _RESERVATION.fullmatch(value)
    return {"reservation": f"projects/{match[1]}/reservations/{match[2]}" if match else value}


def _duration(_: str, value: Any) -> Any:
    if value is None:
        return None
    text = str(value)
    return (text if text[-1:].isalpha() else f"{text}s") if _SECONDS.fullmatch(text) else "12h"


_CAPACITY: Final = _Replacement(_TOP, "capacity", _capacity)
_DURATION: Final = _Replacement(("trainer",), "max_run_duration", _duration)
REPLACED: Final[Mapping[str, _Replacement]] = {
    **dict.fromkeys(("spot", "preemptible", "flex_start", "on_demand", "strategy", "provisioning_model"), _CAPACITY),
    **dict.fromkeys(("reservation", "reservation_name"), _Replacement(_TOP, "capacity", _reservation)),
    **dict.fromkeys(("timeout", "max_run_time", "max_duration", "deadline"), _DURATION),
}
"""The keys whose meaning another key has: former ones of `targets`, and those of the services' APIs."""
SYNONYMS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "training": {
        "batch_size": ("global_batch_size", "global_batch", "train_batch_size"),
        "grad_accum": ("gradient_accumulation_steps", "gradient_accumulation", "accum_steps", "accumulation_steps"),
        "model_parallel": ("tensor_parallel", "tensor_parallelism", "model_parallelism", "tp"),
        "sequence_length": ("seq_len", "seq_length", "max_seq_len", "context_length", "max_target_length"),
        "train_steps": ("max_steps", "num_steps", "total_steps", "iterations", "num_train_steps"),
        "train_tokens": ("tokens", "total_tokens", "num_tokens", "max_tokens", "token_budget"),
        "learning_rate": ("lr",),
        "learning_rate_rule": ("lr_rule", "lr_scaling", "learning_rate_scaling"),
    },
    "targets": TARGET_NAMES,
    "targets.cloud-tpu": {
        "runtime_version": ("version", "runtime", "software_version", "tpu_software_version", "tpu_vm_image"),
        "external_ips": ("public_ip", "public_ips", "enable_external_ips"),
    },
    "targets.compute-engine": {
        "disk_gb": ("disk_size", "disk_size_gb", "boot_disk_size", "boot_disk_size_gb", "boot_disk_gb"),
        "external_ips": ("public_ip", "public_ips", "enable_external_ips"),
    },
    "targets.gke": {
        "queue": ("local_queue", "queue_name", "kueue_queue"),
        "priority": ("priority_class", "priority_class_name"),
    },
    "capacity": {"reservation": ("name", "reservation_name", "reserved")},
    "prices": _CAPACITY_NAMES,
    "trainer": {
        "image": ("container", "container_image", "docker_image"),
        "env": ("environment", "env_vars", "environment_variables"),
        "args": ("arguments", "flags"),
        "mounts": ("volumes", "volume_mounts"),
        "xla_flags": ("libtpu_init_args", "libtpu_flags"),
        "restarts": ("max_restarts", "retries", "max_retries"),
    },
}
"""Names of other tools for the keys of a section."""
_EXCLUSIVE: Final = ("train_steps", "train_tokens", "epochs")
"""Keys of the same section of which only one may be set."""
DERIVED: Final[Mapping[str, Mapping[str, str]]] = {
    "training": dict.fromkeys(
        ("micro_batch", "micro_batch_size", "microbatch", "per_device_batch_size", "per_core_batch_size"),
        "the micro-batch follows from batch_size, grad_accum and model_parallel",
    )
    | dict.fromkeys(
        ("data_parallel", "data_parallelism", "dp", "fsdp", "fsdp_parallelism"),
        "data parallelism follows from the size and model_parallel",
    ),
    "targets.compute-engine": dict.fromkeys(
        ("runtime_version", "runtime", "image", "image_family", "source_image"),
        "the image is Google's newest for the generation",
    )
    | dict.fromkeys(
        ("disk_type", "boot_disk_type"),
        "the type of the boot disk follows from the generation",
    ),
}
"""Values that follow from other keys of the spec, by section, with the reason for which they are no keys."""


def synonym(path: KeyPath, key: str) -> str | None:
    """Return the key of a section that has the meaning of another tool's name."""
    _, section = split_layer(path)
    names = SYNONYMS.get("prices" if section[:1] == ("prices",) else ".".join(map(str, section)), {})
    return next((name for name, others in names.items() if _letters(key) in map(_letters, others)), None)


def split_layer(path: KeyPath) -> tuple[KeyPath, KeyPath]:
    """Split a path into that of its layer, which is empty at the top, and the section inside it."""
    length = 0
    if path[:1] == ("environments",):
        length = 4 if path[2:3] == ("overrides",) else 2
    elif path[:1] == ("overrides",):
        length = 2
    return (path[:length], path[length:]) if len(path) >= length else (_TOP, path)


def key_advice(data: Any, schema: Mapping[str, Any], path: KeyPath, key: str, value: Any) -> str:
    """Return the edit for an unknown key of the mapping at a path; an empty text if no section is known for it."""
    unknown = UnknownKey(data, *split_layer(path), key, value)
    advice = _advice_by_name(unknown)
    if advice is not None:
        return advice
    place = next((place for place in _places(unknown, schema) if place != path), None)
    if place is None:
        return ""
    if unknown.has(*place, key):
        return f"delete {dotted((*path, key))}: {dotted((*place, key))} is already set"
    return f"{quote_key(key)} belongs {_where(place)}: move it there, or delete it"


def _advice_by_name(unknown: UnknownKey) -> str | None:
    """Return the edit for a key that the tables know, or None."""
    if edit := moved_key(unknown):
        return edit
    section, key, word = unknown.section, unknown.key, unknown.key.lower().replace("-", "_")
    if section == ("capacity",):
        return _capacity_help(unknown)
    replacement = REPLACED.get(word)
    if replacement and (not section or section[0] in ("trainer", "targets")):
        return _replacement_help(unknown, replacement)
    if reason := DERIVED.get(".".join(map(str, section)), {}).get(word):
        return f"delete {quote_key(key)}: {reason}"
    if meant := synonym(unknown.path, key):
        return _synonym_help(unknown, meant)
    return None if synonym(("training",), key) else step_setting(unknown)


def _capacity_help(unknown: UnknownKey) -> str:
    """Return the edit for a key of a reservation that names another capacity, or the reservation."""
    if meant := synonym(unknown.path, unknown.key):
        return _synonym_help(unknown, meant)
    texts = (unknown.value, unknown.key) if isinstance(unknown.value, str) else (unknown.key,)
    word = next((word for text in texts if (word := _capacity_word(text))), None)
    return f"set {dotted(unknown.path)} to {word}" if word else ""


def value_advice(path: KeyPath, value: str) -> str:
    """Return the edit for a text that is another name of a capacity or a target; an empty text if it is none."""
    _, section = split_layer(path)
    if section[-1:] == ("target",):
        meant = _meant(TARGET_NAMES, value)
        return f"did you mean {meant}?" if meant else ""
    if section != ("capacity",):
        return ""
    if match := _RESERVATION_TEXT.fullmatch(value):
        name = f"{match[1]}{match[2]}" if match[1] else match[2].removeprefix("reservations/")
        return f"set {dotted(path)} to {yaml_example({'reservation': name})}"
    word = _meant(_CAPACITY_NAMES, value)
    if word == "reservation":
        return "for example: capacity: {reservation: chat-2026}"
    return f"did you mean {word}?" if word else ""


def _synonym_help(unknown: UnknownKey, meant: str) -> str:
    others = [name for name in (meant, *_EXCLUSIVE) if meant in (name, *_EXCLUSIVE)]
    present = next((name for name in others if unknown.has(*unknown.path, name)), None)
    if present is None:
        return f"did you mean {meant}?"
    reason = f"{dotted((*unknown.path, present))} is already set"
    if present != meant:
        reason += f", and excludes {meant}, which has this meaning"
    return f"delete {quote_key(unknown.key)}: {reason}"


def _where(place: KeyPath) -> str:
    return f"under {dotted(place)}" if place else "at the top of the file"


def _replacement_help(unknown: UnknownKey, replacement: _Replacement) -> str:
    name, place = quote_key(unknown.key), (*unknown.layer, *replacement.section)
    value = replacement.convert(unknown.key, unknown.value)
    if value is None:
        return f"delete {name}"
    if unknown.has(*place, replacement.key):
        return f"delete {name}: {dotted((*place, replacement.key))} is already set"
    return f"replace it by {replacement.key}: {yaml_example(value)} {_where(place)}"


def _places(unknown: UnknownKey, schema: Mapping[str, Any]) -> Iterator[KeyPath]:
    """Yield the paths of the mappings that take a key, those of the same layer first."""
    layer, section, key = unknown.layer, unknown.section, unknown.key
    definitions = schema["$defs"]
    known = {
        (): _LAYERED,
        ("trainer",): definitions["trainer_layer" if layer else "trainer"]["properties"],
        ("targets",): definitions["targets"]["properties"],
    }
    if section[:1] != ("targets",):
        target = _target_of(unknown)
        known["targets", target] = definitions.get(target, {}).get("properties", {})
    yield from ((*layer, *place) for place, keys in known.items() if key in keys)
    # Figures of one size stand in `overrides`, and not in an environment's.
    if layer[2:3] == ("overrides",) and key in definitions["override"]["properties"]:
        yield ("overrides", layer[3])
    if key in schema["properties"] and section != ("capacity",):
        yield _TOP
    yield from environment_places(unknown, schema)
    yield from ((name,) for name in ("training", "gate") if key in definitions[name]["properties"])


_LAYERED: Final = ("capacity", "trainer", "targets")


def _target_of(unknown: UnknownKey) -> str:
    """Return the target of the layer's environment, or of most."""
    own = (*unknown.layer[:2], "target") if unknown.layer[:1] == ("environments",) else ("target",)
    target = value_at(unknown.data, own if unknown.has(*own) else ("target",))
    return target if isinstance(target, str) else ""
