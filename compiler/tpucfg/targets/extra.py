"""Merge a spec's `extra` into a request body, and refuse the fields that would falsify what is planned and priced.

The merge only adds. Mappings merge key by key, and the items of lists of mappings by their `name` or `key`, else by
position. A field of `extra` is refused, and left out of the result, if it

- touches a value that the target wrote;
- is in the target's RESERVED: further machines or pods, chips, another time limit, another capacity or machine;
- is a variable that the TPU runtime gets from the service.

Everything else is the user's: the API's schema checks it, and a review shows it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from tpucfg.findings import MAX_FINDINGS, Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import (
    ITEM_NAMES,
    KeyPath,
    all_matches,
    first_match,
    is_object_list,
    leaf_paths,
    matches,
)
from tpucfg.plan import Job
from tpucfg.plan.rules.trainer_rules import runtime_variable
from tpucfg.spec import Project
from tpucfg.targets import target_named
from tpucfg.targets.interface import MACHINE, ExtraEffect, Origin, RequestBody, spec_path
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import Document

_HARMLESS: Final = (
    "spec.ttlSecondsAfterFinished",
    "**.resources.requests.memory",
    "**.resources.requests.cpu",
    *(
        f"**.ports.*.{field}" for field in ("name", "containerPort", "protocol")
    ),  # only document what a program opens
)
_UNPREFIXED: Final = ("**.labels.*", "**.annotations.*")


def is_harmless(path: KeyPath) -> bool:
    """Return True for a field of `extra` that changes nothing in what runs: any other one is a caution in a review.

    A label or an annotation with a prefix, as in `example.com/name`, may be an instruction for a controller.
    """
    if any(matches(pattern, path) for pattern in _UNPREFIXED):
        return "/" not in str(path[-1])
    return any(matches(pattern, path) for pattern in _HARMLESS)


class FieldRefusal(NamedTuple):
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
    fix: str = ""
    """The edit, if it is another one than to delete the field and to use the settings."""


class Merged(NamedTuple):
    """A request body with the fields that `extra` adds."""

    body: RequestBody
    sources: Mapping[KeyPath, KeyPath]
    """The path below `extra` of each value that it added, by the path in the request body."""
    refusals: tuple[FieldRefusal, ...]

    def source(self, path: KeyPath) -> KeyPath | None:
        """Return the path below `extra` of a value of the request body; None if `extra` did not add it."""
        for end in range(len(path), 0, -1):
            if (source := self.sources.get(path[:end])) is not None:
                return (*source, *path[end:])
        return None

    def source_below(self, path: KeyPath) -> KeyPath | None:
        """Return the path below `extra` of the first value that it added below a path; None if there is none."""
        return next(
            (source for field, source in self.sources.items() if field[: len(path)] == path), None
        )


def merged_request_body(job: Job) -> Merged:
    """Return the request body of a job with `extra` merged in."""
    return merge_extra(job, target_named(job.target).request_body(job))


def merge_extra(job: Job, body: RequestBody) -> Merged:
    """Return a request body that the job's target wrote, with the job's `extra` merged into it."""
    extra = job.options.get("extra")
    if not extra:
        return Merged(body, {}, ())
    merger = _Merger(job)
    merged = merger.mapping(body, extra, _Position((), ()))
    return Merged(merged, merger.sources, tuple(merger.refusals))


def extra_path(job: Job, path: KeyPath = ()) -> KeyPath:
    """Return the path in the spec of a value below `extra`, in the layer that sets it for the job."""
    return job.settings.source(("targets", job.target, "extra", *path))


def extra_source(job: Job, path: KeyPath) -> KeyPath | None:
    """Return the path in the spec of the value of `extra` that added a field; None if another setting did."""
    source = merged_request_body(job).source(path) if job.options.get("extra") else None
    return None if source is None else extra_path(job, source)


class _Position(NamedTuple):
    """The position of a value in the request body and in `extra`."""

    path: KeyPath
    source: KeyPath

    def child(self, step: str | int, source: str | int | None = None) -> "_Position":
        return _Position((*self.path, step), (*self.source, step if source is None else source))


_LEFT_OUT: Final = object()
"""The result of adding a value that is refused."""


class _Merger:
    """One merge, which collects the sources of added values and the refusals on its way through both values."""

    def __init__(self, job: Job) -> None:
        target = target_named(job.target)
        self._job = job
        self._origins = target.ORIGINS
        self._reserved = target.RESERVED.items()
        self.sources: dict[KeyPath, KeyPath] = {}
        self.refusals: list[FieldRefusal] = []

    def mapping(
        self, body: Mapping[str, Any], extra: Mapping[str, Any], at: _Position
    ) -> dict[str, Any]:
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
        self.refusals.append(self._touched(value, at))
        return value

    def _items(self, items: Sequence[Any], extra: Sequence[Any], at: _Position) -> list[Any]:
        merged = list(items)
        # Items of `extra` do not count: one without a name must not turn named items into items by position.
        key = next(
            (key for key in ITEM_NAMES if all(isinstance(item.get(key), str) for item in items)),
            None,
        )
        for number, item in enumerate(extra):
            names = [own.get(key) for own in merged] if key else list(range(len(items)))
            name = item.get(key) if key else number
            if name is not None and name in names:
                index = names.index(name)
                others = {field: value for field, value in item.items() if field != key}
                merged[index] = self.mapping(merged[index], others, at.child(index, number))
            elif (new := self._added(item, at.child(len(merged), number))) is not _LEFT_OUT:
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
                if (part := self._added(item, at.child(len(result), number))) is not _LEFT_OUT:
                    result.append(part)
        return _LEFT_OUT if value and result in ({}, []) else result

    def _refusal(self, value: Any, at: _Position) -> FieldRefusal | None:
        for reserved in all_matches(self._reserved, at.path):
            if reserved.applies(value, self._job):
                return self._falsifies(at, reserved.effect, reserved.source)
        name = value.get("name") if isinstance(value, dict) and at.path[-2:-1] == ("env",) else None
        row = runtime_variable(name) if isinstance(name, str) else None
        return self._falsifies(at, MACHINE._replace(text=row.effect), row.source) if row else None

    def _falsifies(self, at: _Position, effect: ExtraEffect, page: str) -> FieldRefusal:
        keys = (_setting(effect.key, self._job),) if effect.key else ()
        return FieldRefusal(effect.id, at.path, at.source, effect.text, keys, page, effect.fix)

    def _touched(self, value: Any, at: _Position) -> FieldRefusal:
        if at.path in self.sources:
            return FieldRefusal(
                "TPU066", at.path, at.source, "an earlier item of extra sets it", ()
            )
        matched = (first_match(self._origins.items(), path) for path in leaf_paths(value, at.path))
        origins = list(dict.fromkeys(origin for origin in matched if origin))
        keys = tuple(
            dict.fromkeys(key for origin in origins for key in _deciding_keys(origin, self._job))
        )
        # With several origins, one rule is not the reason for the rest.
        rule = origins[0] if len(origins) == 1 and origins[0].kind == "rule" else None
        reason, page = (rule.detail, rule.source) if rule else ("", "")
        return FieldRefusal("TPU066", at.path, at.source, reason, keys, page)


def _deciding_keys(origin: Origin, job: Job) -> tuple[KeyPath, ...]:
    """Return the paths in the spec of the settings that decide a field."""
    if origin.kind == "spec":
        return (spec_path(origin.detail, job),)
    if origin.kind == "catalog":
        return (_setting("sizes", job),)
    if origin.kind == "figure":
        return (("trainer", "args"), ("training",))
    return (_setting(origin.key, job),) if origin.key else ()


def _setting(key: str, job: Job) -> KeyPath:
    """Return the path in the spec of a setting, in the layer that sets it for the job."""
    return job.environment.sizes_path if key == "sizes" else spec_path(key, job)


# Findings


def refused_extra(
    project: Project, jobs: Iterable[tuple[Job, Sequence[FieldRefusal]]]
) -> Iterator[Finding]:
    """Yield a finding for each field of `extra` that was refused, with the settings that decide it in all jobs.

    Of more than MAX_FINDINGS fields, the first ones are reported.
    """
    by_field: dict[tuple[KeyPath, FieldRefusal], dict[str, None]] = {}
    for job, refusals in jobs:
        for refusal in refusals:
            # The index in the merged list depends on the job's own items, and that in `extra` is what the reader sees.
            same = refusal._replace(field=refusal.source, keys=())
            keys = by_field.setdefault((extra_path(job, refusal.source), same), {})
            keys.update(dict.fromkeys(map(dotted, refusal.keys)))
    for (path, refusal), keys in islice(by_field.items(), MAX_FINDINGS):
        yield _finding(project.document, path, refusal, tuple(keys))
    if len(by_field) > MAX_FINDINGS:
        message = f"extra has {len(by_field):,} refused fields; the first {MAX_FINDINGS} are listed"
        location = project.document.key_location(next(iter(by_field))[0])
        yield Finding.of("TPU010", message, location, help="delete those first, and check again")


def _finding(
    document: Document, path: KeyPath, refusal: FieldRefusal, keys: Sequence[str]
) -> Finding:
    field = dotted(_named(document, path, refusal.source))
    deciding = listed(keys, 3, last=" and ")
    if refusal.id == "TPU066":
        by = f"decided by {deciding}" if keys else "fixed"
        message = (
            f"{field} is {by}, and extra cannot change it{refusal.reason and f': {refusal.reason}'}"
        )
    else:
        by = f", and that is decided by {deciding}" if keys else ""
        message = f"{field} in extra would {refusal.reason}{by}"
    hint = refusal.fix or "delete it"
    if len(keys) == 1:
        hint = f"delete it here, and {'list another size in' if keys[0].endswith('sizes') else 'set'} {deciding}"
    elif keys:
        hint = f"delete it here, and change the settings that decide it: {deciding}"
    details = (f"see {refusal.page}",) if refusal.page else ()
    return Finding.of(refusal.id, message, document.key_location(path), help=hint, details=details)


def _named(document: Document, path: KeyPath, source: KeyPath) -> KeyPath:
    """Return the path of a field below `extra`, with the names of items: the config has them at other positions."""
    start, steps = len(path) - len(source), list(source)
    for index, step in enumerate(source):
        node = document.node(path[: start + index + 1])
        name = (
            node.value.get("name")
            if isinstance(step, int) and node and isinstance(node.value, dict)
            else None
        )
        if isinstance(name, str) and name:
            steps[index] = name
    return tuple(steps)
