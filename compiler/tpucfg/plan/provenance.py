"""Explain the values of a job: figures by lines of the spec, rows of the catalog and rules, settings by layers."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from tpucfg.catalog import Slice
from tpucfg.findings import Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan.job import Job
from tpucfg.plan.run_progress import examples_of_run
from tpucfg.plan.rung import Rung, Seen, decimal_text, figure_texts, number_path, setting_path
from tpucfg.spec import Layered, Number, Project, layers_of, takes_away
from tpucfg.text_format import dotted, format_value
from tpucfg.yamldoc import Document, KeyPath

PODS: Final = "https://cloud.google.com/tpu/docs/training-on-tpu-pods"
"""Google's guide to scaling batch and steps with the cores."""
FUJI: Final = "https://github.com/apple/axlearn/blob/34aed43/axlearn/experiments/text/gpt/fuji.py"
"""AXLearn's models that keep the tokens of a step, and accumulate less on more slices."""
RULE_SOURCES: Final = {
    "keep": "",
    "linear": "https://arxiv.org/abs/1706.02677",
    "sqrt": "https://arxiv.org/abs/1404.5997",
}
"""The paper of each learning rate rule."""


class Reason(NamedTuple):
    """One step in the derivation of a value."""

    text: str
    location: Location | None = None
    """The line of the spec that the step refers to, if there is one."""
    source: str = ""
    """The id of a source of the catalog, or a public address."""


def figure_reasons(project: Project, tuned_on: Slice, rung: Rung, key: str) -> Iterator[Reason]:
    """Yield the derivation of a figure of a rung: a setting of `training` that becomes a flag, or a key of `steps`."""
    result = figure_texts(rung)[key]
    if key in rung.overridden:
        yield from _override_reasons(project, rung, key, result)
        return
    setting = number_path(project, key)
    # Accumulation may follow from a batch that stays, without a setting of its own.
    if project.document.node(setting):
        yield _spec_line(project, setting)
    if key == "batch_size" and (per_device := project.training.per_device_batch_size):
        training = project.training
        yield _batch_of_devices(per_device, tuned_on, training.grad_accum, str(training.batch_size))
    if key in _CONSTANT:
        source = PODS if key == "epochs" else ""
        yield Reason(f"{_CONSTANT[key]} are the same on every rung: {result}", source=source)
    elif key == "grad_accum":
        yield from _grad_accum_reasons(project, tuned_on, rung)
    elif key == "train_steps" and project.training.train_tokens is not None:
        yield from _token_reasons(project, tuned_on, rung)
    elif key in project.training.steps and not project.training.steps[key].scaled:
        yield Reason(f"scale: false keeps it on every rung: {result}")
    elif project.training.batch_rule == "keep" and "batch_size" not in rung.overridden:
        yield from _keep_reasons(project, result)
    else:
        yield from _scale_reasons(project, tuned_on, rung)
        yield from _rule_reasons(project, rung, key, result)


def probe_reasons(project: Project, job: Job) -> Iterator[Reason]:
    """Yield the derivation of the steps of a probe."""
    yield _spec_line(project, ("probe", "steps"))
    yield Reason(
        f"the steps of a probe, on every rung; the whole run has {job.whole_run.rung.train_steps or 'epochs'}"
    )


def continued_reasons(project: Project, rung: Rung) -> Iterator[Reason]:
    """Yield the derivation of the steps of a run that goes on."""
    seen, length = rung.seen or Seen(0, 0), rung.sequence_length or 1
    is_tokens = project.training.train_tokens is not None
    unit, size = ("tokens", length) if is_tokens else ("examples", 1)
    promised, step = int(examples_of_run(project.training) * size), size * rung.batch_size
    yield _spec_line(project, setting_path(project.training, "train_steps"))
    yield Reason(
        f"the run has seen {seen.examples * size:,} of {promised:,} {unit} at step {seen.step:,}"
    )
    left = Fraction(promised - seen.examples * size, step)
    quotient = f"{promised - seen.examples * size} / {step}{_rounded(left)}"
    yield Reason(f"the {unit} that are left / those of a step: {quotient}")
    yield Reason(f"with the steps so far: {seen.step} + {-(-left // 1)} = {rung.train_steps}")


DERIVED: Final = ("model_parallel", "data_parallel", "micro_batch", "per_device_batch_size")
"""Numbers of a rung that follow from its figures, and are flags only where `training.flags` names them."""


def derived_reasons(project: Project, tuned_on: Slice, rung: Rung, name: str) -> Iterator[Reason]:
    """Yield the derivation of a number of DERIVED."""
    is_of_device = name == "per_device_batch_size"
    yield from _replica_reasons(project, rung.slice, 1 if is_of_device else rung.model_parallel)
    if name in ("model_parallel", "data_parallel"):
        result = rung.model_parallel if name == "model_parallel" else rung.data_parallel
        yield Reason(f"{name} of {rung.size}: {result}")
        return
    yield from figure_reasons(project, tuned_on, rung, "batch_size")
    if rung.grad_accum is not None:
        yield from figure_reasons(project, tuned_on, rung, "grad_accum")
    if is_of_device:
        parts = f"{rung.batch_size} / ({rung.slice.devices} × {rung.grad_accum or 1})"
        yield Reason(f"examples of one device at a time: {parts} = {decimal_text(rung.per_device)}")
        return
    parts = f"{rung.batch_size} / ({rung.data_parallel} × {rung.grad_accum or 1})"
    yield Reason(f"examples of one replica at a time: {parts} = {_ratio_text(rung.micro_batch)}")


_CONSTANT: Final = {"epochs": "epochs", "sequence_length": "the tokens of one example"}
"""The figures that no rung changes."""


def _override_reasons(project: Project, rung: Rung, key: str, result: str) -> Iterator[Reason]:
    per_device = project.overrides[rung.size].per_device_batch_size if key == "batch_size" else None
    yield _spec_line(
        project, ("overrides", rung.size, "per_device_batch_size" if per_device else key)
    )
    if per_device:
        yield _batch_of_devices(per_device, rung.slice, rung.grad_accum, result)
    yield Reason(f"an override of this rung, used unchanged: {result}")


def _batch_of_devices(
    per_device: Number, slice_: Slice, grad_accum: int | None, result: str
) -> Reason:
    parts = f"{per_device.text} × {slice_.devices} devices × {grad_accum or 1}"
    return Reason(
        f"the batch of {slice_.size}: {parts} = {result}", source=slice_.device_sources[0]
    )


def _spec_line(project: Project, path: KeyPath) -> Reason:
    text = project.document.source_text(path)
    return Reason(
        f"{dotted(path)}: {text}" if text else dotted(path), project.document.key_location(path)
    )


def _scale_reasons(project: Project, tuned_on: Slice, rung: Rung) -> Iterator[Reason]:
    yield _spec_line(project, ("training", "tuned_on"))
    if rung.scale != rung.cores_scale:
        yield _spec_line(project, ("overrides", rung.size, "batch_size"))
        k = _ratio_text(rung.scale)
        yield Reason(
            f"k = {rung.batch_size} / {project.training.batch_size} = {k}, from the batch of this rung"
        )
        return
    slices = (rung.slice,) if rung.size == tuned_on.size else (tuned_on, rung.slice)
    for slice_ in slices:
        yield Reason(f"{slice_.size} has {slice_.cores} cores", source=slice_.sources[0])
    yield Reason(f"k = {rung.slice.cores} / {tuned_on.cores} = {_ratio_text(rung.scale)}")


def _rule_reasons(project: Project, rung: Rung, key: str, result: str) -> Iterator[Reason]:
    training, k = project.training, _ratio_text(rung.scale)
    if key == "batch_size":
        share = _ratio_text(Fraction(rung.batch_size, rung.slice.devices))
        product = f"{training.batch_size} × {k} = {result}"
        yield Reason(f"a step keeps its examples per device, {share}: {product}", source=PODS)
    elif key == "learning_rate" and training.learning_rate:
        rule, rate = training.learning_rate_rule, training.learning_rate.text
        kept, linear, root = (
            f"{rate} is kept",
            f"{rate} × {k} = {result}",
            f"{rate} × √{k} = {result}",
        )
        product = {"keep": kept, "linear": linear, "sqrt": root}[rule]
        if project.document.node(("training", "learning_rate_rule")):
            yield _spec_line(project, ("training", "learning_rate_rule"))
        yield Reason(f"by the rule {rule}: {product}", source=RULE_SOURCES[rule])
    else:
        tuned_steps = training.train_steps if key == "train_steps" else training.steps[key].value
        rounded = _rounded(Fraction(tuned_steps or 0) / rung.scale)
        purpose = (
            "divided to see the same number of examples"
            if key == "train_steps"
            else "divided like train_steps"
        )
        yield Reason(f"{purpose}: {tuned_steps} / {k} = {result}{rounded}", source=PODS)


def _keep_reasons(project: Project, result: str) -> Iterator[Reason]:
    yield _spec_line(project, ("training", "batch_rule"))
    yield Reason(
        f"the batch stays on every rung, and with it steps and learning rate: {result}", source=FUJI
    )


def _grad_accum_reasons(project: Project, tuned_on: Slice, rung: Rung) -> Iterator[Reason]:
    training, tuned = project.training, _ratio_text(rung.tuned_micro_batch)
    if training.batch_rule == "per_core":
        yield Reason(f"the batch grows with the cores, and accumulation stays: {rung.grad_accum}")
        return
    yield _spec_line(project, ("training", "batch_rule"))
    yield _spec_line(project, ("training", "tuned_on"))
    yield from _replica_reasons(project, tuned_on, training.model_parallel)
    replicas, parts = tuned_on.devices // training.model_parallel, training.grad_accum or 1
    yield Reason(
        f"a micro-batch there has {training.batch_size} / ({replicas} × {parts}) = {tuned} examples"
    )
    if rung.size != tuned_on.size:
        yield from _replica_reasons(project, rung.slice, rung.model_parallel)
    examples = _ratio_text(Fraction(rung.batch_size, rung.data_parallel))
    rule = f"the fewest micro-batches of at most {tuned} examples"
    yield Reason(
        f"{rule}: {rung.batch_size} / {rung.data_parallel} = {examples}, in {rung.grad_accum}",
        source=FUJI,
    )


def _replica_reasons(project: Project, slice_: Slice, model_parallel: int) -> Iterator[Reason]:
    """Yield the devices and the replicas of a size."""
    replicas = slice_.devices // model_parallel
    yield Reason(f"{slice_.size} has {slice_.devices} JAX devices", source=slice_.device_sources[0])
    if model_parallel > 1:
        overridden: KeyPath = ("overrides", slice_.size, "model_parallel")
        yield _spec_line(
            project,
            overridden if project.document.node(overridden) else ("training", "model_parallel"),
        )
        yield Reason(f"{slice_.devices} / {model_parallel} = {replicas} replicas")


def _token_reasons(project: Project, tuned_on: Slice, rung: Rung) -> Iterator[Reason]:
    """Yield the derivation of steps from tokens, after the derivation of the batch."""
    yield _spec_line(project, ("training", "sequence_length"))
    yield from figure_reasons(project, tuned_on, rung, "batch_size")
    tokens, length = project.training.train_tokens or 0, rung.sequence_length or 1
    rounded = _rounded(Fraction(tokens, length * rung.batch_size))
    quotient = f"{tokens} / ({length} × {rung.batch_size}) = {rung.train_steps}{rounded}"
    yield Reason(f"tokens of the run / tokens of a step: {quotient}")


def _rounded(exact: Fraction) -> str:
    """Return the clause about a count that was rounded up; empty for a whole number."""
    return "" if exact.denominator == 1 else f", rounded up from {float(exact):.12g}"


def _ratio_text(value: Fraction) -> str:
    return (
        str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
    )


# Layered settings.


class _Entry(NamedTuple):
    """The part of one layer in the value of a setting."""

    layer: KeyPath
    path: KeyPath
    text: str
    """The value in this layer."""


def setting_reasons(project: Project, job: Job, setting: KeyPath) -> Iterator[Reason]:
    """Yield the origin of a setting, given its path below the layers, or one line for each value of a mapping."""
    value = job.settings.layers.find(*map(str, setting))
    if value is not None and _is_merged(value, setting) and value.value:
        for key in value.value:
            yield from list(setting_reasons(project, job, (*setting, key)))[:1]
        return
    entries = _entries(project.document, job, setting)
    if not entries:
        default = "the target's default applies"
        if setting == ("capacity",):
            default = (
                f"it is {job.capacity_text}"
                if job.capacity_text == job.capacity.kind
                else job.capacity_text
            )
        yield Reason(f"no layer sets {dotted(setting)}: {default}")
        return
    *others, winner = entries
    location = project.document.key_location
    yield Reason(
        f"{dotted(winner.path)}: {winner.text}{_set_in(winner.layer)}", location(winner.path)
    )
    for entry in reversed(others):
        yield Reason(
            f"{dotted(entry.path)}: {entry.text}, which {_name(winner.layer)} overrides",
            location(entry.path),
        )


def preset_reasons(project: Project, key: str) -> Iterator[Reason]:
    """Yield the origin of an argument that the preset of the flags adds."""
    yield _spec_line(project, ("training", "flags"))
    if preset := project.training.preset:
        purpose = "so that a restart finds the checkpoints of its run"
        if key in preset.probe_args:
            purpose = (
                "to a probe, which keeps no checkpoints and follows the whole run's learning rate"
            )
        yield Reason(f"the preset adds it, {purpose}", source=preset.source)


def layer_reasons(project: Project, job: Job, setting: KeyPath) -> Iterator[Reason]:
    """Yield the lines of every layer that takes part in a setting whose value is printed elsewhere, the last first."""
    value = job.settings.layers.find(*map(str, setting))
    first, *others = setting_reasons(project, job, setting)
    if value is not None and _is_merged(value, setting):
        for entry in reversed(_entries(project.document, job, setting)):
            yield Reason(
                f"{dotted(entry.path)}{_set_in(entry.layer)}",
                project.document.key_location(entry.path),
            )
    else:
        winner = _entries(project.document, job, setting)[-1]
        yield first._replace(text=f"{dotted(winner.path)}{_set_in(winner.layer)}")
        yield from others


def _is_merged(value: Layered, setting: KeyPath) -> bool:
    """Return True for a mapping to which every layer may add; a reservation is one value, although a mapping."""
    return isinstance(value.value, dict) and setting[:1] != ("capacity",)


def _entries(document: Document, job: Job, setting: KeyPath) -> list[_Entry]:
    """Return the parts of the layers in a setting, from the first layer to the one that wins."""
    layers = layers_of(
        document.data, job.environment.name, job.size, is_probe=job.whole is not None
    )
    return [entry for layer in layers if (entry := _entry(document, layer, setting))]


def _entry(document: Document, layer: Layered, setting: KeyPath) -> _Entry | None:
    value = layer
    for depth, key in enumerate(setting):
        child = value.children().get(str(key))
        if child is None:
            return None
        if takes_away(child.value, setting[:depth]):
            return _Entry(layer.path, child.path, "taken away")
        value = child
    return _Entry(layer.path, value.path, _text(document, value))


def _text(document: Document, value: Layered) -> str:
    return document.source_text(value.path) or format_value(value.value)


def _set_in(layer: KeyPath) -> str:
    return f", set in {_name(layer)}" if layer else ""


def _name(layer: KeyPath) -> str:
    return dotted(layer, "the top of the file")
