"""Merge a spec's `extra` into a request body, and refuse every field that would undo the plan.

The merge only adds: whatever the target wrote stays as it is. Mappings merge key by key, and the items of lists of
objects by what identifies them in the API, mostly their `name`, else by position. A field of `extra` is refused, and
left out of the result, if it

- replaces a value that the target wrote;
- has an origin in the target's ORIGINS that is decided although this job does not use it, such as the other form of
  naming an accelerator;
- is in the target's RESERVED: it would override or exclude a decided field, or ask for more machines.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from tpucfg.plan.job import Job
from tpucfg.targets import target_named
from tpucfg.targets.interface import Origin, RequestBody, Reserved
from tpucfg.targets.list_items import WHOLE, identity_fields, is_object_list, item_identity
from tpucfg.targets.patterns import Rows, origin_of, reached_rows, rows_after, spec_path, table_rows
from tpucfg.yamldoc.document import KeyPath

_FREE_WHEN_UNSET: Final = "targets."
"""The start of the paths of settings whose field `extra` may set instead, as no other part of the plan reads them."""


class Refusal(NamedTuple):
    """A field of `extra` that the merge left out."""

    id: str
    """The id of the finding."""
    field: KeyPath
    """The path in the request body."""
    source: KeyPath
    """The path below `extra`."""
    reason: str
    """The effect of the field, or the rule that decides it; empty if the keys are the only reason."""
    keys: tuple[KeyPath, ...]
    """The paths in the spec of the settings that decide the field."""
    page: str = ""
    """The public page that states the reason."""
    counterpart: str | None = None
    """See `Reserved.counterpart`."""


class Merged(NamedTuple):
    """A request body with the fields that `extra` adds."""

    body: RequestBody
    sources: Mapping[KeyPath, KeyPath]
    """The path below `extra` of each value that it added, by the path in the request body."""
    refusals: tuple[Refusal, ...]

    def source(self, path: KeyPath) -> KeyPath | None:
        """Return the path below `extra` of a value of the request body; None if `extra` did not add it."""
        for end in range(len(path), 0, -1):
            if (source := self.sources.get(path[:end])) is not None:
                return (*source, *path[end:])
        return None

    def source_below(self, path: KeyPath) -> KeyPath | None:
        """Return the path below `extra` of the first value that it added below a path; None if there is none."""
        return next((source for field, source in self.sources.items() if field[: len(path)] == path), None)


_NAMES: Final = {"items": "key"}
"""The field whose value patterns of RESERVED have instead of an item's index, by the list's name; else `name`."""


class _Position(NamedTuple):
    """The position of a value in the request body and in `extra`."""

    origins: Rows[Origin]
    """The rows of ORIGINS; none in an item that `extra` adds to a list, as they describe the target's own items."""
    reserved: Rows[Reserved]
    """The rows of RESERVED, which has the names of named items instead of their indices."""
    path: KeyPath = ()
    source: KeyPath = ()

    def child(self, key: str) -> "_Position":
        # A final `*` does not decide about new keys of a mapping such as the labels.
        origins = rows_after(tuple(row for row in self.origins if row[0] != ("*",)), key)
        reserved = rows_after(self.reserved, key)
        return _Position(origins, reserved, (*self.path, key), (*self.source, key))

    def item(self, index: int, source: int, value: Any, *, is_new: bool) -> "_Position":
        name = value.get(_NAMES.get(str(self.path[-1]), "name")) if isinstance(value, dict) else None
        origins = () if is_new else rows_after(self.origins, str(index))
        reserved = rows_after(self.reserved, name if isinstance(name, str) else str(index))
        return _Position(origins, reserved, (*self.path, index), (*self.source, source))


def merged_request_body(job: Job) -> Merged:
    """Return the request body of a job with `extra` merged in."""
    return merge_extra(job, target_named(job.target).request_body(job))


def merge_extra(job: Job, body: RequestBody) -> Merged:
    """Return a request body that the job's target wrote, with the job's `extra` merged into it."""
    extra = job.options.get("extra")
    if not extra:
        return Merged(body, {}, ())
    target = target_named(job.target)
    merger = _Merger(job, body, target.ORIGINS)
    merged = merger.mapping(body, extra, _Position(table_rows(target.ORIGINS), table_rows(target.RESERVED)))
    return Merged(merged, merger.sources, tuple(merger.refusals))


def extra_path(job: Job, path: KeyPath = ()) -> KeyPath:
    """Return the path in the spec of a value below `extra`, in the layer that sets it for the job."""
    return job.settings.source(("targets", job.target, "extra", *path))


def extra_source(job: Job, path: KeyPath) -> KeyPath | None:
    """Return the path in the spec of the value of `extra` that added a field; None if another setting did."""
    source = merged_request_body(job).source(path) if job.options.get("extra") else None
    return None if source is None else extra_path(job, source)


_LEFT_OUT: Final = object()
"""The result of adding a value that is refused."""


class _Merger:
    """One merge, which collects the sources of added values and the refusals on its way through both values."""

    def __init__(self, job: Job, body: RequestBody, origins: Mapping[str, Origin]) -> None:
        self._job = job
        self._body = body
        self._origins = origins
        self.sources: dict[KeyPath, KeyPath] = {}
        self.refusals: list[Refusal] = []

    def mapping(self, body: Mapping[str, Any], extra: Mapping[str, Any], at: _Position) -> dict[str, Any]:
        """Return a mapping of the request body with the fields of `extra` added."""
        merged = dict(body)
        for key, value in extra.items():
            if key in body:
                merged[key] = self._merged(body[key], value, at.child(key))
            elif (added := self._added(value, at.child(key))) is not _LEFT_OUT:
                merged[key] = added
        return merged

    def _merged(self, value: Any, extra: Any, at: _Position) -> Any:
        if isinstance(value, dict) and isinstance(extra, dict):
            return self.mapping(value, extra, at)
        if is_object_list(value) and is_object_list(extra):
            return self._items(value, extra, at)
        self.refusals.append(self._replaces(value, at))
        return value

    def _items(self, items: Sequence[Any], extra: Sequence[Any], at: _Position) -> list[Any]:
        fields = identity_fields(str(at.path[-1]), items)
        own = [item_identity(item, fields) for item in items]
        merged, known = list(items), set()
        for number, item in enumerate(extra):
            has_identity = bool(fields) and (fields == WHOLE or fields[0] in item)
            identity = item_identity(item, fields) if has_identity else number
            if identity in known:
                self.refusals.append(self._repeated(at.item(number, number, item, is_new=True), fields))
                continue
            known.add(identity)
            index = own.index(str(identity)) if identity in own else number if not fields else len(items)
            if index < len(items):
                others = {key: value for key, value in item.items() if key not in fields and fields != WHOLE}
                merged[index] = self.mapping(items[index], others, at.item(index, number, items[index], is_new=False))
            elif (new := self._added(item, at.item(len(merged), number, item, is_new=True))) is not _LEFT_OUT:
                merged.append(new)
        return merged

    def _added(self, value: Any, at: _Position) -> Any:
        """Return a value that only `extra` has, without its refused parts."""
        if refusal := self._refusal(value, at):
            self.refusals.append(refusal)
            return _LEFT_OUT
        self.sources[at.path] = at.source
        result: Any = value
        if isinstance(value, dict):
            parts = {key: self._added(item, at.child(key)) for key, item in value.items()}
            result = {key: part for key, part in parts.items() if part is not _LEFT_OUT}
        elif isinstance(value, list):
            result = []
            for number, item in enumerate(value):
                is_new = isinstance(item, dict)
                if (part := self._added(item, at.item(len(result), number, item, is_new=is_new))) is not _LEFT_OUT:
                    result.append(part)
        return _LEFT_OUT if value and result in ({}, []) else result

    def _refusal(self, value: Any, at: _Position) -> Refusal | None:
        for reserved in reached_rows(at.reserved):
            if reserved.applies(value, self._body):
                return self._overrides(reserved, at)
        origin = None if is_object_list(value) else _unused_origin(value, at.origins)
        return self._decided(at, [origin]) if origin else None

    def _replaces(self, value: Any, at: _Position) -> Refusal:
        origins = [origin_of(self._origins, path) for path in _leaves(value, at.path)]
        return self._decided(at, list(dict.fromkeys(origin for origin in origins if origin)))

    def _decided(self, at: _Position, origins: Sequence[Origin]) -> Refusal:
        variable = _variable_at(self._body, at.path)
        keys = tuple(dict.fromkeys(key for origin in origins for key in _deciding_keys(origin, self._job, variable)))
        # With several origins, one rule is not the reason for the rest.
        rule = origins[0] if len(origins) == 1 and origins[0].kind == "rule" else None
        reason, page = (rule.detail, rule.source) if rule else ("", "")
        return Refusal("TPU066", at.path, at.source, reason, keys, page)

    def _overrides(self, reserved: Reserved, at: _Position) -> Refusal:
        keys = (_setting(reserved.key, self._job),) if reserved.key else ()
        id_ = "TPU068" if reserved.adds_machines else "TPU067"
        return Refusal(id_, at.path, at.source, reserved.effect, keys, reserved.source, reserved.counterpart)

    @staticmethod
    def _repeated(at: _Position, fields: Sequence[str]) -> Refusal:
        shown = "fields" if tuple(fields) == WHOLE else " and ".join(fields)
        return Refusal("TPU069", at.path, at.source, shown, ())


def _unused_origin(value: Any, rows: Rows[Origin]) -> Origin | None:
    """Return the origin of a field that this job's request body does not have; None if `extra` may add the field."""
    # A list of texts, such as the arguments, has the origin of its items.
    of_items = rows_after(rows, "0") if isinstance(value, list) else ()
    for origin in (*reached_rows(rows), *reached_rows(of_items)):
        is_free = origin.kind == "spec" and origin.detail.startswith(_FREE_WHEN_UNSET)
        return None if is_free else origin
    return None


def _variable_at(body: RequestBody, path: KeyPath) -> str | None:
    """Return the name of the program's variable with a field at a path; None if the field is no variable's."""
    value: Any = body
    for step, inner in pairwise(path):
        value = value[step] if step in value or isinstance(step, int) else {}
        if step == "env" and isinstance(inner, int) and inner < len(value):
            return str(value[inner].get("name"))
    return None


def _deciding_keys(origin: Origin, job: Job, variable: str | None) -> tuple[KeyPath, ...]:
    """Return the paths in the spec of the settings that decide a field."""
    if origin.kind == "spec":
        # A secret of the spec is decided as a whole: `extra` cannot give it a value instead of the reference.
        if variable and variable in {secret.variable for secret in job.secrets}:
            return (job.settings.source(("trainer", "secrets", variable)),)
        return (spec_path(origin, job),)
    if origin.kind == "catalog":
        return (_setting("sizes", job),)
    if origin.kind == "figure":
        return (("trainer", "args"), ("training",))
    return (_setting(origin.key, job),) if origin.key else ()


def _setting(key: str, job: Job) -> KeyPath:
    """Return the path in the spec of a setting, in the layer that sets it for the job."""
    return job.environment.sizes_path if key == "sizes" else spec_path(Origin("spec", key), job)


def _leaves(value: Any, path: KeyPath) -> Iterator[KeyPath]:
    """Yield the paths of the scalars in a value, or its own path if it contains none."""
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*path, key))
    else:
        yield path
