"""The draft of a spec: all keys and figures of a request body, with a gap for each required value that it lacks."""

import re
from typing import Any, Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.importing.keys import program_words, settings
from tpucfg.importing.program import BATCH_FIGURES, Number, flags_of, read_program
from tpucfg.importing.sizes import Choice
from tpucfg.importing.source import Source
from tpucfg.plan.job import XLA_FLAGS_VARIABLE

_NAME: Final = re.compile(r"[^a-z0-9]+")
_MAX_NAME_LENGTH: Final = 30


class Given(NamedTuple):
    """The values that the file lacks."""

    environment: str = "dev"
    project: str | None = None
    region: str | None = None
    batch_size: int | None = None
    train_steps: int | None = None


def draft_spec(
    source: Source, view: dict[str, Any], given: Given, choice: Choice, catalog: Catalog, *, figures: bool = True
) -> dict[str, Any]:
    """Return the spec of all that the keys say, with None for required values that are missing.

    Without `figures`, those of the command line stay in it.
    """
    values = settings(source.target, view)
    program = read_program(*program_words(source.target, view), source.name, with_figures=figures)
    training: dict[str, Any] = dict(program.figures)
    if not training.keys() & {*BATCH_FIGURES}:
        training["batch_size"] = _number(given.batch_size)
    if not training.keys() & {"train_steps", "epochs"}:
        training["train_steps"] = _number(given.train_steps)
    spec: dict[str, Any] = {
        "version": 1,
        "name": _name(source.name),
        "target": source.target,
        "sizes": [choice.size or None],
        "environments": {given.environment: _environment(source, given)},
        "trainer": {"image": None, **program.trainer},
        "training": {"tuned_on": choice.size or None, **training},
    }
    if (flags := flags_of(program, training)) is not None:
        spec["training"]["flags"] = flags
    for key, value in values.items():
        _put(spec, [given.environment if step == "<env>" else step for step in key.split(".")], value)
    if override := choice.override():
        spec["overrides"] = {choice.size: override}
    _shape_trainer(spec["trainer"], choice, catalog)
    return spec


def _environment(source: Source, given: Given) -> dict[str, Any]:
    location = source.location or ""
    region = location.rpartition("-")[0] if location.count("-") > 1 else location
    return {"project": source.project or given.project, "region": region or given.region}


def _name(text: str) -> str:
    name = _NAME.sub("-", text.lower()).lstrip("-0123456789")[:_MAX_NAME_LENGTH].rstrip("-")
    return name or "imported"


def _number(value: int | None) -> Number | None:
    return None if value is None else Number(value)


def _put(spec: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        spec = spec.setdefault(step, {})
    spec[path[-1]] = value


def _shape_trainer(trainer: dict[str, Any], choice: Choice, catalog: Catalog) -> None:
    """Move the flags of the TPU compiler out of the variables, and drop the gap of an image beside a package."""
    if (trainer.get("package") or trainer.get("module")) and not trainer["image"]:
        trainer.pop("image")
    env = {name: value.replace("${", "$${") for name, value in trainer.get("env", {}).items()}
    flags, slice_ = env.get(XLA_FLAGS_VARIABLE, ""), catalog.find(choice.size)
    if slice_ and flags and " ".join(flags.split()) == flags:
        trainer["xla_flags"] = {slice_.generation: flags.split()}
        del env[XLA_FLAGS_VARIABLE]
    trainer.pop("env", None)
    trainer.update({"env": env} if env else {})
