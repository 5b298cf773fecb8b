"""Why a figure of a rung is what it is: the line of the spec, the rows of the catalogue, the rule, the result."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.findings import Location
from tpucfg.plan.rung import Rung, program_args, rung_figures
from tpucfg.spec.project import Project
from tpucfg.text_format import dotted
from tpucfg.yamldoc.document import KeyPath

PODS: Final = "https://cloud.google.com/tpu/docs/training-on-tpu-pods"
RULE_SOURCES: Final = {
    "keep": "",
    "linear": "https://arxiv.org/abs/1706.02677",
    "sqrt": "https://arxiv.org/abs/1404.5997",
}


class Reason(NamedTuple):
    """One link of the chain that leads to a value."""

    text: str
    location: Location | None = None
    """The line of the spec, where it is one."""
    source: str = ""
    """Id of a source of the catalogue, or a public address."""


def figure_reasons(project: Project, tuned_on: Slice, rung: Rung, key: str) -> Iterator[Reason]:
    """The chain behind one figure of a rung: `batch_size`, `train_steps`, `learning_rate`, a key of steps."""
    result = dict(rung_figures(rung))[key]
    if key in rung.overridden:
        yield _line(project, ("overrides", rung.size, key))
        yield Reason(f"an override of this rung, taken as it is: {result}")
        return
    yield _line(project, ("training", "steps", key) if key in project.training.steps else ("training", key))
    if key == "epochs":
        yield Reason(f"epochs stay on every rung: {result}", source=PODS)
        return
    yield from _scale(project, tuned_on, rung)
    yield from _rule(project, rung, key, result)


def arg_reasons(project: Project, size: str, flag: str) -> Iterator[Reason]:
    """The chain behind one of the program's own flags."""
    for arg in program_args(project, size):
        if arg.key == flag:
            yield _line(project, arg.path)


def _line(project: Project, path: KeyPath) -> Reason:
    text = project.document.source_text(path)
    return Reason(f"{dotted(path)}: {text}" if text else dotted(path), project.document.key_location(path))


def _scale(project: Project, tuned_on: Slice, rung: Rung) -> Iterator[Reason]:
    yield _line(project, ("training", "tuned_on"))
    if rung.scale != rung.cores_scale:
        yield _line(project, ("overrides", rung.size, "batch_size"))
        yield Reason(
            f"k = {rung.batch_size} / {project.training.batch_size} = {_number(rung.scale)}, by the batch of this rung"
        )
        return
    for slice_ in (tuned_on, rung.slice)[rung.size == tuned_on.size :]:
        yield Reason(f"{slice_.size} has {slice_.cores} cores", source=slice_.sources[0])
    yield Reason(f"k = {rung.slice.cores} / {tuned_on.cores} = {_number(rung.scale)}")


def _rule(project: Project, rung: Rung, key: str, result: str) -> Iterator[Reason]:
    training, k = project.training, _number(rung.scale)
    if key == "batch_size":
        per_core = _number(rung.per_core)
        yield Reason(f"the batch per core stays {per_core}: {training.batch_size} × {k} = {result}", source=PODS)
    elif key == "learning_rate" and training.learning_rate:
        rule, rate = training.learning_rate_rule, training.learning_rate.text
        said = {"keep": f"{rate} stays", "linear": f"{rate} × {k}", "sqrt": f"{rate} × √{k}"}[rule]
        if project.document.node(("training", "learning_rate_rule")):
            yield _line(project, ("training", "learning_rate_rule"))
        yield Reason(
            f"by the rule {rule}: {said}" + ("" if rule == "keep" else f" = {result}"), source=RULE_SOURCES[rule]
        )
    else:
        tuned = training.train_steps if key == "train_steps" else training.steps[key]
        exact = Fraction(tuned or 0) / rung.scale
        rounded = f", rounded up from {float(exact):g}" if exact.denominator != 1 else ""
        said = "divided so that as many examples are seen" if key == "train_steps" else "divided as the run is"
        yield Reason(f"{said}: {tuned} / {k} = {result}{rounded}", source=PODS)


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
