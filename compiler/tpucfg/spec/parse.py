"""Parse a document into a Project: the schema first, then the rules that no schema can express."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path as FilePath
from typing import Any, Final

from tpucfg import schemas
from tpucfg.findings import MAX_FINDINGS, RULES, Finding, collect, errors
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import values_at
from tpucfg.spec.credentials import credentials_in, hidden_text, without_credentials
from tpucfg.spec.layers import present_layers
from tpucfg.spec.placeholders import placeholder_findings
from tpucfg.spec.presets import FIGURES, NAMED_FIGURES
from tpucfg.spec.project import Project, build_project, listed_paths, overridable
from tpucfg.spec.sections import apply_rules, compares
from tpucfg.text_format import dotted, format_value, listed, nearest, quote_key, yaml_example
from tpucfg.yamldoc import Document, KeyPath, count_values_and_depth
from tpucfg.yamldoc.reader import read_file


def load_project(path: FilePath) -> tuple[Project | None, tuple[Finding, ...]]:
    """Return the project in a file, or None if there are errors, and every finding about its text and structure."""
    return project_from_document(read_file(path))


def project_from_document(document: Document) -> tuple[Project | None, tuple[Finding, ...]]:
    """Return the project of a document, or None if there are errors, and every finding."""
    project, findings = parse_project(document)
    return (None if project is None or project.broken else project), findings


class ParsedProject(NamedTuple):
    """The valid part of a spec, and the findings about the rest."""

    project: Project | None
    """The project, with stand-ins for its broken sections; None if the spec is too broken for that."""
    findings: tuple[Finding, ...]


def parse_project(document: Document) -> ParsedProject:
    """Return the valid part of a project, and every finding about its text and structure."""
    if document.root is None:
        return ParsedProject(None, collect(document.findings))
    document = document._replace(text=hidden_text(document))
    findings = [*document.findings]
    # The reader replaces a refused value by 0, which may break the schema too: one finding per location is enough.
    reported = {finding.location.point for finding in findings}
    schema_findings = schemas.schema_findings("tpucfg", document, schemas.SPEC)
    schema_findings = without_credentials(document, schema_findings)
    findings += [finding for finding in schema_findings if finding.location.point not in reported]
    if len(findings) > MAX_FINDINGS:
        return ParsedProject(None, collect(findings))
    if errors(findings):
        return _parse_invalid(document, findings)
    findings += _rule_findings(document)
    if errors(findings):
        return _parse_remaining(document, findings)
    return ParsedProject(build_project(document), collect(findings))


def _rule_findings(document: Document) -> list[Finding]:
    """Return the findings of the rules that no JSON Schema can express."""
    return [
        *apply_rules(_RULES, document),
        *islice(placeholder_findings(document), MAX_FINDINGS),
    ]


def _parse_invalid(document: Document, findings: Sequence[Finding]) -> ParsedProject:
    """Apply the rules to the part of a document that its schema errors leave."""
    # Imported here, as most specs are valid and a start pays for what it imports.
    from tpucfg.spec.recovery import replace_broken_sections, without_stand_ins

    repaired = replace_broken_sections(document, errors(findings))
    # An error may be located outside the section that it breaks, so validity is checked and not assumed.
    if not schemas.is_valid("tpucfg", repaired.data):
        return ParsedProject(None, collect(findings))
    return _parse_remaining(document, [*findings, *without_stand_ins(_rule_findings(repaired))])


def _parse_remaining(document: Document, findings: Sequence[Finding]) -> ParsedProject:
    """Build the project from the sections without an error."""
    from tpucfg.spec.recovery import replace_broken_sections

    repaired = replace_broken_sections(document, errors(findings))
    return ParsedProject(build_project(repaired), collect(findings))


# The rules that no schema can express: keys that must agree with other keys, and limits on repeated values.

MAX_REPEATED_VALUES: Final = 2_000
"""Maximum values in a target's `extra` or in the program's args: a pod has about a hundred."""
MIN_SOFT_DELETE_DAYS: Final = 7
"""https://cloud.google.com/storage/docs/soft-delete#retention-duration."""


@compares("sizes", "environments")
def _check_ladders(document: Document) -> Iterator[Finding]:
    environments = document.data["environments"]
    without = (
        []
        if "sizes" in document.data
        else [name for name in environments if "sizes" not in environments[name]]
    )
    has_none = without == [*environments]
    for name in without[:1] if has_none else without:
        path: KeyPath = ("sizes",) if has_none else ("environments", name)
        subject = "no environment has sizes" if has_none else f"{dotted(path)} has no sizes"
        message, hint = (
            f"{subject}, and there are none at the top level",
            "add sizes: [v2-8, v2-32], here or at the top",
        )
        yield document.finding("TPU005", message, path, at_key=True, help=hint)


@compares("overrides", "training")
def _check_override_keys(document: Document) -> Iterator[Finding]:
    known = (*overridable(), *document.data["training"].get("steps", {}))
    for size, override in document.data.get("overrides", {}).items():
        for key in override:
            if key not in known:
                yield _unknown_override(document, size, key, known)


def _unknown_override(document: Document, size: str, key: str, known: tuple[str, ...]) -> Finding:
    # Imported here, as most specs have no unknown key.
    from tpucfg.schemas.spec_keys import key_advice

    path, name, near = ("overrides", size), quote_key(key), nearest(key, known)
    hint = (
        f"did you mean {near}?"
        if near
        else f"add {name} to training.steps if it is counted in steps, or delete it"
    )
    hint = key_advice(document.data, path, key, document.data["overrides"][size][key]) or hint
    message, details = f"{dotted(path)} has no key {name}", (f"it takes: {listed(known)}",)
    return document.finding(
        "TPU004", message, (*path, key), at_key=True, help=hint, details=details
    )


@compares("training")
def _check_step_keys(document: Document) -> Iterator[Finding]:
    # Flags and overrides refer to a setting by its key alone, so no two settings may share one.
    reserved = (*FIGURES, *NAMED_FIGURES, "train_tokens", *overridable(), "fallback", "overrides")
    for key in document.data["training"].get("steps", {}):
        if key in reserved:
            from tpucfg.schemas.spec_keys import key_advice  # here, as most specs have no wrong key

            message = f"{key} cannot be a key of training.steps: it is the name of another setting"
            path: KeyPath = ("training", "steps", key)
            value = document.data["training"]["steps"][key]
            advice = key_advice(document.data, path[:-1], key, value)
            hint = advice or "rename it; training.flags sets the name of its flag"
            yield document.finding("TPU007", message, path, at_key=True, help=hint)


@compares("training")
def _check_flag_keys(document: Document) -> Iterator[Finding]:
    training = document.data["training"]
    flags = training.get("flags", {})
    settings = (*FIGURES, *NAMED_FIGURES, *training.get("steps", {}))
    for key in flags if isinstance(flags, dict) else ():
        if key not in (*settings, "preset"):
            near, name = nearest(key, settings), quote_key(key)
            hint = f"did you mean {near}?" if near else f"delete training.flags.{name}"
            message, path = (
                f"training.flags has {name}, which is not a setting of training",
                ("training", "flags", key),
            )
            details = (f"it takes: {listed(settings)}",)
            yield document.finding("TPU004", message, path, at_key=True, help=hint, details=details)


@compares("allow")
def _check_allowed_ids(document: Document) -> Iterator[Finding]:
    for id_, value in document.data.get("allow", {}).items():
        if id_ in RULES and RULES[id_].allowable:
            yield from _check_allowed_places(document, id_, value)
            continue
        message, hint = (
            f"{id_} cannot be allowed: it is no finding about a matter of judgment",
            f"delete allow.{id_}",
        )
        details = ("tpucfg explain lists the findings that can be allowed",)
        yield document.finding(
            "TPU007", message, ("allow", id_), at_key=True, help=hint, details=details
        )


def _check_allowed_places(document: Document, id_: str, value: Any) -> Iterator[Finding]:
    """Yield an error for a rule that needs a place, and for each place that the spec does not have."""
    path: KeyPath = ("allow", id_)
    deletion = f"delete {dotted(path)}"
    if isinstance(value, str):
        if RULES[id_].only_by_path:
            message = f"{id_} ({RULES[id_].title}) is allowed for one place, so that another one stays an error"
            # A token by its form is no matter of judgment.
            named = [dotted(each.path) for each in credentials_in(document) if each.by == "name"]
            hint = (
                f"set {dotted(path)} to {yaml_example({'path': named[0], 'reason': value})}"
                if named
                else deletion
            )
            yield document.finding("TPU007", message, path, help=hint)
        return
    known = {
        dotted(each): None
        for each, _ in values_at(document.data, "**")
        if each[:1] not in ((), ("allow",))
    }
    for index, text in enumerate(listed_paths(value)):
        if text not in known:
            message = f"{dotted(path)} is for {format_value(text, quoted=False)}, which the file does not have"
            near = nearest(text, tuple(known))
            place = (*path, "path", index) if isinstance(value["path"], list) else (*path, "path")
            yield document.finding(
                "TPU007", message, place, help=f"did you mean {near}?" if near else deletion
            )


@compares("environments")
def _check_soft_delete(document: Document) -> Iterator[Finding]:
    for name, environment in document.data["environments"].items():
        days = environment.get("soft_delete_days", 0)
        if 0 < days < MIN_SOFT_DELETE_DAYS:
            path = ("environments", name, "soft_delete_days")
            message = f"{dotted(path)} is {days}: Cloud Storage keeps deleted objects for 0 days, or for 7 to 90"
            yield document.finding("TPU007", message, path, help="set it to 7")


@compares("trainer", "environments", "overrides")
def _check_exit_codes(document: Document) -> Iterator[Finding]:
    for layer in present_layers(document):
        path = (*layer, "trainer", "restarts", "exit_codes")
        node = document.node(path)
        for index, item in enumerate(node.value if node else ()):
            first, _, last = str(item).partition("-")
            if last and int(first) > int(last):
                message = f"{dotted(path)} has {item}, and a range begins with its lower exit code"
                yield document.finding(
                    "TPU007", message, (*path, index), help=f"set it to {last}-{first}"
                )


# A schema limits the entries of one list or mapping, and cannot count the values below it.
@compares("trainer", "targets", "overrides")
def _check_repeated_values(document: Document) -> Iterator[Finding]:
    parts: list[KeyPath] = []
    for layer in present_layers(document):
        targets = document.node((*layer, "targets"))
        parts += [(*layer, "targets", name, "extra") for name in (targets.keys if targets else ())]
        parts += [(*layer, "trainer", "args"), (*layer, "args")]
    for path in parts:
        node = document.node(path)
        values = count_values_and_depth(node)[0] if node else 0
        if values > MAX_REPEATED_VALUES:
            maximum = f"the maximum is {MAX_REPEATED_VALUES:,}, because every config repeats them"
            message = f"{dotted(path)} has {values:,} values; {maximum}"
            hint = "move them to a file that the program reads, in the image or in the bucket"
            yield document.finding("TPU010", message, path, at_key=True, help=hint)


_RULES: Final = (
    _check_ladders,
    _check_override_keys,
    _check_step_keys,
    _check_flag_keys,
    _check_allowed_ids,
    _check_soft_delete,
    _check_exit_codes,
    _check_repeated_values,
)
