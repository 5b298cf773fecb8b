"""Report the fields of `extra` that the merge into the request bodies refused."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from tpucfg.findings import MAX_FINDINGS, Finding
from tpucfg.plan.job import Job
from tpucfg.spec.project import Project
from tpucfg.targets.extra import Refusal, extra_path
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc.document import Document, KeyPath


def refused_extra(project: Project, jobs: Iterable[tuple[Job, Sequence[Refusal]]]) -> Iterator[Finding]:
    """Yield a finding for each field of `extra` that was refused, with the settings that decide it in all jobs.

    Of more than MAX_FINDINGS fields, the first ones are reported.
    """
    by_field: dict[tuple[KeyPath, Refusal], dict[str, None]] = {}
    by_size: dict[KeyPath, list[Job]] = {}
    jobs = tuple(jobs)
    for job, refusals in jobs:
        for refusal in refusals:
            path = extra_path(job, refusal.source)
            # The index in the merged list depends on the job's own items, and that in `extra` is what the reader sees.
            same = refusal._replace(field=refusal.source, keys=())
            keys = by_field.setdefault((path, same), {})
            keys.update(dict.fromkeys(map(dotted, refusal.keys)))
            if refusal.counterpart is not None:
                by_size.setdefault(path, []).append(job)
    for (path, refusal), keys in islice(by_field.items(), MAX_FINDINGS):
        named = refusal._replace(field=_named(project.document, path, refusal.source))
        message, hint = _TEXTS[refusal.id](named, tuple(keys))
        if path in by_size:
            message, hint = _of_other_sizes(named, path, by_size[path], [job for job, _ in jobs])
        details = (f"see {refusal.page}",) if refusal.page else ()
        yield Finding.of(refusal.id, message, project.document.key_location(path), help=hint, details=details)
    if len(by_field) > MAX_FINDINGS:
        message = f"extra has {len(by_field):,} refused fields; the first {MAX_FINDINGS} are listed"
        (path, _), *_ = by_field
        location = project.document.key_location(path)
        yield Finding.of("TPU010", message, location, help="delete those first, and check again")


def _of_other_sizes(refusal: Refusal, path: KeyPath, refusing: Sequence[Job], jobs: Sequence[Job]) -> tuple[str, str]:
    """Return the message and the help for a field that only jobs of one host have, or only those of several.

    Args:
        refusal: The refusal, with the names of items.
        path: The path of the field in the spec.
        refusing: The jobs that do not have the field.
        jobs: All jobs.
    """
    sizes = list(dict.fromkeys(job.size for job in refusing))
    others = list(
        dict.fromkeys(job.size for job in jobs if job not in refusing and extra_path(job, refusal.source) == path)
    )
    hosts = "one host" if refusing[0].slice.hosts == 1 else "several hosts"
    names = listed(sizes, 3, last=" and ")
    verb = "has" if len(sizes) == 1 else "have"
    message = f"{dotted(refusal.field)} in extra would {refusal.reason}: {names} {verb} {hosts}"
    places = [dotted(_in_override(path, size)) for size in others]
    moved = f"move it to {listed(places, 3, last=' and ')}" if places else "delete it"
    return message, f"{moved}, and use {refusal.counterpart} for {names}" if refusal.counterpart else moved


def _in_override(path: KeyPath, size: str) -> KeyPath:
    """Return the path of a setting of a target in the override of a size, in the same environment if it is in one."""
    environment = path[:2] if path[0] == "environments" else ()
    # After the environment, whose name may be `targets`.
    return (*environment, "overrides", size, *path[path.index("targets", len(environment)) :])


def _named(document: Document, path: KeyPath, source: KeyPath) -> KeyPath:
    """Return the path of a field below `extra`, with the names of items: the config has them at other positions."""
    start, steps = len(path) - len(source), list(source)
    for index, step in enumerate(source):
        node = document.node(path[: start + index + 1])
        name = node.value.get("name") if isinstance(step, int) and node and isinstance(node.value, dict) else None
        if isinstance(name, str) and name:
            steps[index] = name
    return tuple(steps)


def _decided(refusal: Refusal, keys: Sequence[str]) -> tuple[str, str]:
    rule = f": {refusal.reason}" if refusal.reason else ""
    by = f"decided by {_list(keys)}" if keys else "fixed"
    return f"{dotted(refusal.field)} is {by}, and extra cannot change it{rule}", _hint(keys)


def _overriding(refusal: Refusal, keys: Sequence[str]) -> tuple[str, str]:
    decided = f", and that is decided by {_list(keys)}" if keys else ""
    return f"{dotted(refusal.field)} in extra would {refusal.reason}{decided}", _hint(keys)


def _repeated(refusal: Refusal, _: Sequence[str]) -> tuple[str, str]:
    return f"{dotted(refusal.field)} repeats an earlier item of extra, with equal {refusal.reason}", "delete it"


def _hint(keys: Sequence[str]) -> str:
    if not keys:
        return "delete it"
    if len(keys) > 1:
        return f"delete it here, and change the settings that decide it: {_list(keys)}"
    (setting,) = keys
    return f"delete it here, and {'list another size in' if setting.endswith('sizes') else 'set'} {setting}"


def _list(keys: Sequence[str]) -> str:
    return listed(keys, 3, last=" and ")


_TEXTS: Final = {"TPU066": _decided, "TPU067": _overriding, "TPU068": _overriding, "TPU069": _repeated}
"""The function for the message and the help of each finding."""
