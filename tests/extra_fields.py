"""Make values of `extra` from the API's schemas: at random with attacks among them, and one for each field."""

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.paths import ITEM_NAMES
from tpucfg.schemas import load_schema

Schema = Mapping[str, Any]

_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "nodeSelector": (
        "cloud.google.com/gke-spot",
        "cloud.google.com/gke-provisioning",
        "cloud.google.com/reservation-name",
        "cloud.google.com/compute-class",
        "cloud.google.com/gke-tpu-topology",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "cloud.google.com/gke-nodepool",
    ),
    "metadata": (
        "startup-script",
        "startup-script-url",
        "shutdown-script",
        "user-data",
        "ssh-keys",
        "tpu-env",
    ),
    "limits": ("google.com/tpu", "cloud-tpus.google.com/v3", "cpu"),
    "requests": ("google.com/tpu", "cloud-tpus.google.com/preemptible-v3", "memory"),
    "overhead": ("google.com/tpu", "cpu"),
    "annotations": (
        "alpha.jobset.sigs.k8s.io/exclusive-topology",
        "alpha.jobset.sigs.k8s.io/node-selector",
        "cloud.google.com/gke-tpu-slice-topology",
        "provreq.kueue.x-k8s.io/maxRunDurationSeconds",
        "gke-gcsfuse/volumes",
    ),
    "labels": ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/max-exec-time-seconds", "team"),
}
"""Keys of open mappings, by the mapping's name."""
_TEXTS: Final[Mapping[str, Sequence[str]]] = {
    "key": (
        "startup-script-url",
        "user-data",
        "cloud.google.com/gke-spot",
        "cloud.google.com/gke-nodepool",
        "google.com/tpu",
        "mine",
        "",
    ),
    "name": (
        "trainer",
        "slice",
        "shm",
        "A",
        "LIBTPU_INIT_ARGS",
        "side",
        "data",
        "TOKEN",
        "TPU_WORKER_ID",
        "TPU_VISIBLE_CHIPS",
    ),
    "mountPath": (
        *(
            f"{folder}shm{rest}"
            for folder in ("/dev/", "dev/", "/dev//")
            for rest in ("", "/", "/x")
        ),
        "/data",
    ),
    "operator": ("Exists", "Equal", "In"),
    "parent": ("projects/other/locations/us-central1-a",),
}
_BY_POSITION: Final = ("disks", "networkInterfaces", "serviceAccounts", "versions")
"""Lists of Compute Engine whose items have no identity."""
_SINGLE: Final = {"integer": (0, 1, 2, 8, 512), "boolean": (True, False), "number": (0.5, 2)}


def resolved(root: Schema, schema: Schema) -> Schema:
    """Return a schema instead of a reference to it."""
    return root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def random_extra(target: str, body: Any, rng: random.Random) -> dict[str, Any]:
    """Return an `extra` of valid types for a request body, with many fields and keys that the plan decides."""
    root = load_schema(target)
    extra: dict[str, Any] = _Random(root, rng).value(root, body, "", 0)
    return extra


def _names(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field that names an item of a list, by which `extra` finds it; nothing if its position does."""
    return next(({key: item[key]} for key in ITEM_NAMES if key in item), {})


class _Random:
    def __init__(self, root: Schema, rng: random.Random) -> None:
        self._root = root
        self._rng = rng

    def value(self, schema: Schema, own: Any, name: str, depth: int) -> Any:
        """Return a value for a field whose value in the request body is `own`, or None."""
        schema = resolved(self._root, schema)
        if "properties" in schema:
            return self._object(schema, own if isinstance(own, dict) else None, depth)
        if isinstance(schema.get("additionalProperties"), dict):
            keys = [*_KEYS.get(name, ()), *(own or ()), "x"]
            chosen = self._rng.sample(keys, min(len(keys), self._rng.randint(1, 2)))
            return {
                key: self.value(schema["additionalProperties"], None, key, depth + 1)
                for key in chosen
            }
        if schema.get("type") == "array":
            return [
                self._item(schema["items"], own, name, depth)
                for _ in range(self._rng.randint(1, 2))
            ]
        return self._scalar(schema, own, name)

    def _object(self, schema: Schema, own: Mapping[str, Any] | None, depth: int) -> dict[str, Any]:
        properties = schema["properties"]
        keys = set() if own is not None else set(schema.get("required", ()))
        likely = [
            key
            for key in own or ()
            if key in properties and isinstance(own[key] if own else None, dict | list)
        ]
        if likely and self._rng.random() < 0.9:
            keys.add(self._rng.choice(likely))
        if depth < 14:
            keys.update(
                self._rng.sample(sorted(properties), min(len(properties), self._rng.randint(0, 2)))
            )
        return {
            key: self.value(properties[key], (own or {}).get(key), key, depth + 1)
            for key in sorted(keys)
        }

    def _item(self, schema: Schema, own: Any, name: str, depth: int) -> Any:
        item = (
            self._rng.choice(own)
            if isinstance(own, list) and own and self._rng.random() < 0.7
            else None
        )
        value = self.value(schema, item, name, depth + 1)
        return {**value, **_names(item)} if isinstance(item, dict) else value

    def _scalar(self, schema: Schema, own: Any, name: str) -> Any:
        if "enum" in schema or "const" in schema:
            return self._rng.choice(schema.get("enum") or [schema["const"]])
        kinds = schema.get("type", "string")
        kind = self._rng.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "object":
            return {}
        if kind != "string":
            return self._rng.choice(_SINGLE[kind])
        texts = [*schema.get("examples", ()), *_TEXTS.get(name, ())] or ["x"]
        return self._rng.choice(
            [*texts, own] if isinstance(own, str) and "pattern" not in schema else texts
        )


class Field(NamedTuple):
    """A field of the API's message, with an `extra` that sets nothing else but what the API requires beside it."""

    name: str
    """The path; `[=]` is the target's own item of a list, and `[+]` a new one."""
    extra: dict[str, Any]


def fields(target: str, body: Any) -> Iterator[Field]:
    """Yield every field that a request body can have; a recursive type is followed once."""
    root = load_schema(target)
    for name, extra in _Fields(root).below(root, body, "", ()):
        yield Field(name, extra)


class _Fields:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def below(
        self, schema: Schema, own: Any, name: str, parents: tuple[str, ...]
    ) -> Iterator[tuple[str, Any]]:
        """Yield the fields of a value with their names, each as a value that contains only this field."""
        reference = str(schema.get("$ref", ""))
        if reference and parents.count(reference) > 0:
            return
        parents, schema = (
            (*parents, reference) if reference else parents,
            resolved(self._root, schema),
        )
        if "properties" in schema:
            required = {} if isinstance(own, dict) else self._required(schema)
            for key, value_schema in schema["properties"].items():
                own_value = own.get(key) if isinstance(own, dict) else None
                for path, value in self.below(
                    value_schema, own_value, f"{name}.{key}" if name else key, parents
                ):
                    yield path, {**required, key: value}
        elif isinstance(schema.get("additionalProperties"), dict):
            for key in (*(own or ()), *_KEYS.get(name.rpartition(".")[2], ()), "x"):
                yield f"{name}.[{key}]", {key: self.sample(schema["additionalProperties"])}
        elif schema.get("type") == "array":
            yield from self._items(schema["items"], own, name, parents)
        else:
            yield name, self.sample(schema)

    def _items(
        self, schema: Schema, own: Any, name: str, parents: tuple[str, ...]
    ) -> Iterator[tuple[str, Any]]:
        if "properties" not in resolved(self._root, schema):
            yield name, [self.sample(schema)]
            return
        for path, value in self.below(schema, None, f"{name}[+]", parents):
            # Items of these lists have no identity, so empty ones stand for the target's own.
            by_position = name.endswith(("workerPoolSpecs", "nodeSpec", *_BY_POSITION))
            yield path, [*({} for _ in own or () if by_position), value]
        for item in (own or ())[:1]:
            for path, value in self.below(schema, item, f"{name}[=]", parents):
                names = _names(item)
                if path.removeprefix(f"{name}[=].") not in names:
                    yield path, [{**value, **names}]

    def _required(self, schema: Schema) -> dict[str, Any]:
        return {key: self.sample(schema["properties"][key]) for key in schema.get("required", ())}

    def sample(self, schema: Schema) -> Any:
        """Return a small valid value."""
        schema = resolved(self._root, schema)
        if "properties" in schema:
            return self._required(schema)
        if "enum" in schema or "const" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        if "examples" in schema:
            return schema["examples"][0]
        kinds = schema.get("type", "string")
        kind = kinds[-1] if isinstance(kinds, list) else kinds
        if kind == "array":
            return [self.sample(schema["items"])]
        return {"string": "x1", "integer": 3, "boolean": True, "number": 0.5, "object": {}}[kind]
