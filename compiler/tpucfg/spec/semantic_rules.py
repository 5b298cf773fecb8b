"""What no schema can say of a spec's structure: keys that have to agree with others, and what configs repeat."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Final

from tpucfg.findings import RULES, Finding
from tpucfg.fs import is_directory, is_file
from tpucfg.spec.project import OVERRIDABLE, Project
from tpucfg.text_format import dotted, listed, nearest, quote_key
from tpucfg.yamldoc.document import Document, KeyPath, count_values_and_depth

MAX_REPEATED_VALUES: Final = 2_000
"""Values of a target's `extra`, or of the program's args: a pod has some hundred."""
RESERVED_LABELS: Final = ("tpucfg-project", "tpucfg-environment")
"""Labels by which the bucket of an environment says whose it is; a test holds that the stack program writes them."""
_FIGURES: Final = ("batch_size", "train_steps", "epochs", "learning_rate")


def semantic_findings(document: Document, broken: frozenset[str]) -> Iterator[Finding]:
    """What is wrong with it, by every rule that reads no `broken` section."""
    for rule, read in _RULES.items():
        if not broken & read:
            yield from rule(document)


def _ladders(document: Document) -> Iterator[Finding]:
    if "sizes" in document.data:
        return
    hint = "add sizes: [v2-8, v2-32]"
    environments = document.data["environments"]
    if not any("sizes" in environment for environment in environments.values()):
        message = "the file needs the key sizes, as no environment has its own"
        yield Finding.of("TPU005", message, document.key(("sizes",)), help=hint)
        return
    for name, environment in environments.items():
        if "sizes" not in environment:
            message = f"environments.{name} has no sizes, and there are none at the top"
            yield Finding.of(
                "TPU005", message, document.key(("environments", name)), help=f"{hint}, here or at the top"
            )


def _override_keys(document: Document) -> Iterator[Finding]:
    steps = tuple(document.data["training"].get("steps", {}))
    for size, override in document.data.get("overrides", {}).items():
        for key in override:
            if key not in OVERRIDABLE and key not in steps:
                yield _unknown_override(document, size, key, steps)


def _unknown_override(document: Document, size: str, key: str, steps: tuple[str, ...]) -> Finding:
    location, where = document.key(("overrides", size, key)), dotted(("overrides", size))
    if key in {"train_steps", "epochs"}:
        message = f"{where} cannot hold {key}: it follows from the batch, so that the examples seen stay"
        return Finding.of("TPU004", message, location, help=f"override batch_size, or change training.{key}")
    known = (*OVERRIDABLE, *steps)
    near = nearest(key, known)
    return Finding.of(
        "TPU004",
        f"{where} has no key {quote_key(key)}",
        location,
        help=f"did you mean {near}?"
        if near
        else f"add {quote_key(key)} to training.steps if it is counted in steps, or delete it",
        details=(f"it takes: {listed(known)}",),
    )


def _step_keys(document: Document) -> Iterator[Finding]:
    """A figure is known by its key, in flags and in overrides, so no two may have the same."""
    for key in document.data["training"].get("steps", {}):
        if key in (*_FIGURES, *OVERRIDABLE):
            message = f"{key} cannot be a key of training.steps: it is the name of something else"
            location = document.key(("training", "steps", key))
            yield Finding.of("TPU007", message, location, help="give it another name; training.flags names its flag")


def _flag_keys(document: Document) -> Iterator[Finding]:
    training = document.data["training"]
    figures = (*_FIGURES, *training.get("steps", {}))
    for key in training.get("flags", {}):
        if key not in figures:
            near = nearest(key, figures)
            yield Finding.of(
                "TPU004",
                f"training.flags names {quote_key(key)}, which is no figure of training",
                document.key(("training", "flags", key)),
                help=f"did you mean {near}?" if near else f"delete training.flags.{quote_key(key)}",
                details=(f"it takes: {listed(figures)}",),
            )


def _allowed_ids(document: Document) -> Iterator[Finding]:
    allowable = [rule.id for rule in RULES.values() if rule.allowable]
    for id_ in document.data.get("allow", {}):
        if id_ not in allowable:
            known = id_ in RULES
            said = (
                f"{id_} cannot be allowed: {RULES[id_].title} is no matter of judgement"
                if known
                else f"there is no finding {id_}"
            )
            hint = f"delete allow.{id_}" + (", and fix what it says" if known else "")
            details = ("what can be allowed is listed by: tpucfg explain",)
            yield Finding.of("TPU007", said, document.key(("allow", id_)), help=hint, details=details)


def _labels(document: Document) -> Iterator[Finding]:
    for name, environment in document.data["environments"].items():
        for key in environment.get("labels", {}):
            if key in RESERVED_LABELS:
                path = ("environments", name, "labels", key)
                message = f"{dotted(path[:-1])} cannot hold {key}: the stack gives its bucket that label itself"
                hint = f"delete {key}, or give it another key"
                yield Finding.of("TPU007", message, document.key(path), help=hint)


def _extent(document: Document) -> Iterator[Finding]:
    """What every config of every job repeats is bounded, where a schema cannot count it."""
    parts: list[KeyPath] = [("targets", name, "extra") for name in document.data.get("targets", {})]
    parts += [("trainer", "args"), *(("overrides", size, "args") for size in document.data.get("overrides", {}))]
    for path in parts:
        node = document.node(path)
        values = count_values_and_depth(node)[0] if node else 0
        if values > MAX_REPEATED_VALUES:
            message = f"{dotted(path)} holds {values:,} values; the most is {MAX_REPEATED_VALUES:,}, as every config repeats them"
            hint = "put them into a file that the program reads, beside the image or in the bucket"
            yield Finding.of("TPU010", message, document.key(path), help=hint)


_RULES: Final[Mapping[Callable[[Document], Iterator[Finding]], frozenset[str]]] = {
    _ladders: frozenset(("sizes", "environments")),
    _override_keys: frozenset(("overrides", "training")),
    _step_keys: frozenset(("training",)),
    _flag_keys: frozenset(("training",)),
    _allowed_ids: frozenset(("allow",)),
    _labels: frozenset(("environments",)),
    _extent: frozenset(("trainer", "targets", "overrides")),
}
"""The rules of structure, each with the sections that it compares."""


# What lies beside the spec: the only place where a check looks at other files.


_BUILD_FILES: Final = ("setup.py", "pyproject.toml")
_BUILT_BY: Final = ("ai-platform",)
"""Targets whose client builds a local package; the others refuse one."""


def package_findings(project: Project, folder: FilePath) -> Iterator[Finding]:
    """A local package that is not there, or that has no build file where gcloud looks for it.

    gcloud builds a package in the folder above it, with the setup.py there or, where there is none, with one of its own
    that knows no requirements: https://cloud.google.com/sdk/gcloud/reference/ai-platform/jobs/submit/training.
    """
    if project.broken & {"trainer", "environments", "target"}:
        return
    package = project.trainer.package
    used = any(environment.target in _BUILT_BY for environment in project.environments.values())
    if not used or package is None or package.startswith("gs://") or "${" in package:
        return
    location = project.document.value(("trainer", "package"))
    inside = FilePath(os.path.normpath(folder.absolute() / package))
    if not is_directory(inside):
        message = f"trainer.package is {package}, and there is no such folder beside the spec"
        hint = f"create {package}, or name a package that is built and in Cloud Storage: gs://…"
        yield Finding.of("TPU053", message, location, help=hint)
    elif not _build_file(inside.parent):
        found = _build_file(inside)
        where = f"{found} is in {package} itself" if found else f"there is neither {' nor '.join(_BUILD_FILES)}"
        message = f"{where}; gcloud looks in the folder above {package}, and builds it without its requirements"
        hint = f"move {found} up, beside {package}" if found else f"write a setup.py beside {package}"
        yield Finding.of("TPU053", message, location, help=hint)


def _build_file(folder: FilePath) -> str | None:
    return next((name for name in _BUILD_FILES if is_file(folder / name)), None)
