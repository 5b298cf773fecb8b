"""The keys of a spec that write the fields of a request body: a target's table of origins, read backwards."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from tpucfg.importing.comparison import expand, item_name
from tpucfg.paths import KeyPath, first_match, grouped, leaf_paths, value_at, values_at
from tpucfg.targets import target_named
from tpucfg.targets.gke import nodes

Matches = Sequence[tuple[KeyPath, Any]]
"""The fields of a request body that one key writes, in the order of the body."""

_REPEATED: Final = ("replicatedJobs", "containers", "workerPoolSpecs", "nodeSpec")
"""Lists of which a job has one item, or several equal ones: the first item is read."""
_UNITS: Final = (("d", 86_400), ("h", 3600), ("m", 60))
_JOB: Final = "spec.replicatedJobs.*.template.spec"
CHILD: Final = ("spec", "replicatedJobs", 0, "template", "spec")
POD: Final = (*CHILD, "template", "spec")
"""The paths of the job of a JobSet, and of its pods."""


def fields_by_key(target: str, body: Mapping[str, Any]) -> dict[str, list[tuple[KeyPath, Any]]]:
    """Return the fields of a request body by the key that writes them; the program's own line is under `figure`."""
    origins = target_named(target).ORIGINS.items()
    paths = [path for path in leaf_paths(body) if _is_first(path)]
    rows = [(origin, path) for path in paths if (origin := first_match(origins, path))]
    return grouped(
        (origin.detail if origin.kind == "spec" else origin.kind, (path, value_at(body, path)))
        for origin, path in rows
        if origin.kind in ("spec", "figure")
    )


def settings(target: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each key that a request body shows, by the key's path with dots."""
    fields = fields_by_key(target, body)
    values = {key: _CONVERT.get(key, _one)(matches, body) for key, matches in fields.items() if key not in _PROGRAM}
    absent = {key: value for key, value in _ABSENT.get(target, {}).items() if key not in fields}
    return absent | {key: value for key, value in values.items() if value not in (None, {}, [])}


def written_fields(target: str, body: Mapping[str, Any], key: KeyPath) -> list[KeyPath]:
    """Return the fields that a key of a spec, given by its path, or a value below it would write."""
    parts, fields = tuple(map(str, key)), []
    for detail, matches in fields_by_key(target, body).items():
        pattern = detail.split(".")
        if _is_below(parts, pattern):
            paths = [path for path, _ in matches]
            # Of several items, the one with the name that the spec has below the key.
            named = [path for path in paths for name in parts[len(pattern) :][:1] if _is_of_item(body, path, name)]
            fields += named or paths
    return fields


def _is_below(path: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(path) >= len(pattern) and all(want in (step, "<env>") for step, want in zip(path, pattern, strict=False))


def _is_of_item(body: Mapping[str, Any], path: KeyPath, name: str) -> bool:
    return name in path or any(item_name(value_at(body, path[:end])) == name for end in range(len(path)))


def program_words(target: str, body: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the words of the program's command and of its arguments."""
    fields = fields_by_key(target, body)
    command, args = ([expand(str(value)) for _, value in fields.get(key, ())] for key in _PROGRAM)
    return command, args


def _is_first(path: KeyPath) -> bool:
    # The second container of a pod shows that there are several.
    is_second = path[-3:] == ("containers", 1, "name")
    return is_second or all(step == 0 or parent not in _REPEATED for parent, step in pairwise(path))


# Conversions of one key's fields


def _one(matches: Matches, _: Any) -> Any:
    return matches[0][1]


def _texts(matches: Matches, _: Any) -> list[str]:
    return [str(value) for _, value in matches]


def _mapping(matches: Matches, _: Any) -> dict[str, Any]:
    return {str(path[-1]): value for path, value in matches}


def _labels(matches: Matches, _: Any) -> dict[str, Any]:
    """Return the labels of the job; those of its pods alone are `extra`, as no key writes them."""
    return _mapping([(path, value) for path, value in matches if "template" not in path], None)


def _capacity(matches: Matches, _: Any) -> Any:
    fields = _mapping(matches, None)
    if nodes.SPOT in fields or "spot" in fields or fields.get("strategy") == "SPOT":
        return "spot"
    if nodes.FLEX_START in fields:
        return "flex-start"
    if any("affinity" in path for path, _ in matches):
        return "on-demand"
    path = fields.get("reservationName") or fields.get("0") or fields.get(nodes.RESERVATION_NAME)
    if not isinstance(path, str):
        return None
    parts = path.split("/")
    project = fields.get(nodes.RESERVATION_PROJECT) or (parts[1] if len(parts) > 1 else None)
    return {"reservation": f"projects/{project}/reservations/{parts[-1]}" if project else parts[-1]}


def _duration(matches: Matches, _: Any) -> str | None:
    """Return seconds, as a number or as `3600s`, in the largest unit that divides them."""
    text = str(matches[0][1]).removesuffix("s")
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
        return None
    unit, size = next(((unit, size) for unit, size in _UNITS if int(text) % size == 0), ("s", 1))
    return f"{int(text) // size}{unit}"


def _restarts(_: Matches, body: Any) -> Any:
    if "scheduling" in body:
        return 0 if value_at(body, ("scheduling", "disableRetries")) else None
    times = value_at(body, ("spec", "failurePolicy", "maxRestarts"), 0)
    codes = [
        rule["values"]
        for _, rule in values_at(body, f"{_JOB}.podFailurePolicy.rules.*.onExitCodes")
        if isinstance(rule, dict) and rule.get("operator") == "NotIn" and isinstance(rule.get("values"), list)
    ]
    if not codes or not all(type(code) is int for code in codes[0]):
        return times
    return {"times": times, "exit_codes": _ranges(sorted(codes[0]))}


def _ranges(codes: Sequence[int]) -> list[int | str]:
    """Return ascending numbers with those that follow each other as a range: `127-255`."""
    starts = [code for code in codes if code - 1 not in codes]
    ends = [code for code in codes if code + 1 not in codes]
    return [start if start == end else f"{start}-{end}" for start, end in zip(starts, ends, strict=True)]


def _variables(matches: Matches, body: Any) -> dict[str, str]:
    """Return the variables with a text of their own; `extra` takes the others, such as references to secrets."""
    items = [value_at(body, path) for path in dict.fromkeys(path[:-1] for path, _ in matches)]
    return {
        item["name"]: expand(item.get("value") or "")
        for item in items
        if isinstance(item.get("name"), str) and "valueFrom" not in item and isinstance(item.get("value") or "", str)
    }


def _mounts(_: Matches, body: Any) -> dict[str, str]:
    """Return the folders of buckets by the path at which the first container sees them."""
    pod: Any = next((pod for _, pod in values_at(body, f"{_JOB}.template.spec")), {})
    places = {
        value_at(pod, ("containers", 0, "volumeMounts", *path[-2:-1], "name")): value
        for path, value in values_at(value_at(pod, ("containers", 0), {}), "volumeMounts.*.mountPath")
    }
    mounts = {}
    for volume in value_at(pod, ("volumes",), ()):
        attributes = value_at(volume, ("csi", "volumeAttributes"), {})
        bucket = attributes.get("bucketName") if isinstance(attributes, dict) else None
        place = places.get(value_at(volume, ("name",)))
        if bucket and place:
            folder = re.search(r"(?:^|,)only-dir=([^,]*)", str(attributes.get("mountOptions")))
            mounts[str(place)] = f"gs://{bucket}/{folder[1] if folder else ''}".rstrip("/")
    return mounts


def _disks(_: Matches, body: Any) -> list[dict[str, Any]]:
    disks = [disk for _, disk in values_at(body, "tpu.nodeSpec.0.node.dataDisks.*") if isinstance(disk, dict)]
    return [
        {"source": disk.get("sourceDisk")} | ({"read_only": False} if disk.get("mode") == "READ_WRITE" else {})
        for disk in disks
    ]


_PROGRAM: Final = ("trainer.command", "figure")
_CONVERT: Final[Mapping[str, Callable[[Matches, Any], Any]]] = {
    "capacity": _capacity,
    "environments.<env>.labels": _labels,
    "trainer.env": _variables,
    "trainer.secrets": lambda _, __: None,
    "trainer.mounts": _mounts,
    "trainer.restarts": _restarts,
    "trainer.max_run_duration": _duration,
    "targets.gke.ttl": _duration,
    "targets.cloud-tpu.max_wait": _duration,
    # Of a slice that selects its topology, the annotation alone is no placement by a queue.
    "targets.gke.topology_aware": lambda _, body: (
        not any(values_at(body, f"**.nodeSelector.[{nodes.TOPOLOGY}]")) or None
    ),
    # Its other field is the DNS policy.
    "targets.gke.host_network": lambda matches, _: _mapping(matches, None).get("hostNetwork"),
    "targets.gke.containers_per_host": lambda _, body: len(value_at(body, (*POD, "containers"), ())),
    "targets.gke.image_pull_secrets": _texts,
    "targets.cloud-tpu.tags": _texts,
    "targets.cloud-tpu.data_disks": _disks,
    "targets.cloud-tpu.external_ips": lambda matches, _: None if matches[0][1] else False,
}
"""By key; any other key has the value of its field."""
_ABSENT: Final[Mapping[str, Mapping[str, Any]]] = {
    "gke": {"targets.gke.service_account": "default", "targets.gke.ttl": None},
    "cloud-tpu": {"targets.cloud-tpu.external_ips": False},
}
"""The values that say what a missing field means to the server."""
