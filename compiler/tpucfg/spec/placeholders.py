"""Fill in placeholders such as `${bucket}`: a closed set, replaced by lookup. Nothing is ever evaluated."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.paths import children
from tpucfg.spec.layers import PROBE, present_layers
from tpucfg.text_format import dotted, format_value, listed
from tpucfg.yamldoc import Document, KeyPath

PLACEHOLDERS: Final[Mapping[str, str]] = {
    "project": "the environment's Google project",
    "name": "the project's name",
    "env": "the environment's name",
    "region": "the environment's region",
    "bucket": "gs:// and the environment's bucket",
    "job_dir": "the job's own folder in the bucket",
    "run_dir": "the folder of the run in the bucket, which is the same on every size if --run names the run",
    "run": "the name of the run: that of --run, or the job's",
    "size": "the size",
    "cores": "the cores of all slices",
    "hosts": "the hosts of all slices",
    "chips": "the chips of all slices",
    "slices": "the number of slices",
    "topology": "the topology of one slice",
    "data_parallel": "the replicas of the model",
    "model_parallel": "the devices of one replica",
    "grad_accum": "the micro-batches of one optimizer step",
    "sequence_length": "the tokens of one example",
    "batch_size": "the examples of one optimizer step",
    "per_device_batch_size": "the examples of one device and micro-batch",
    "micro_batch": "the examples of one replica and micro-batch",
    "train_steps": "the steps of the run",
    "epochs": "the passes over the data",
    "learning_rate": "the learning rate",
}
"""The description of each placeholder; `${steps.KEY}` is one for each key of `training.steps`."""

RUN_PLACEHOLDERS: Final = frozenset({"run_dir", "run_root", "run_folder", "run"})
"""The placeholders of a folder that a named run has on every size; presets use the parts of it."""

_TOKEN: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_VARIABLE: Final = r"(?<!\$)\$\(([A-Z_][A-Z0-9_]*)\)"
"""https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/."""
TRAINER_KEYS: Final = ("command", "args", "env", "mounts", "image", "worker_image", "package")
"""The keys of `trainer` in which placeholders are replaced."""
_PLAIN_KEYS: Final[tuple[KeyPath, ...]] = (("targets",), ("trainer", "xla_flags"))
"""The keys of a layer in which a placeholder would be copied as it is written."""


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders of a text in one pass: inserted values are not searched again. `$${` becomes `${`."""
    if "${" not in text:
        return text
    head, tail = _split_at_last_brace(text)
    return _TOKEN.sub(
        lambda match: "${" if match[1] is None else values[match[1]], head
    ) + tail.replace("$${", "${")


def used_placeholders(texts: Iterable[str]) -> frozenset[str]:
    """Return the names of the placeholders in texts."""
    return frozenset(name for text in texts if "${" in text for _, name in _tokens(text) if name)


def _split_at_last_brace(text: str) -> tuple[str, str]:
    """Return the text up to its last }, and the rest."""
    # Without a } in the rest, the pattern would search it to the end from each of its ${, in quadratic time.
    end = text.rfind("}") + 1
    return text[:end], text[end:]


def _tokens(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the source and the name of every placeholder; the name of an unclosed one is None."""
    head, tail = _split_at_last_brace(text)
    yield from ((match[0], match[1]) for match in _TOKEN.finditer(head) if match[0] != "$${")
    yield from (("${", None) for _ in range(tail.replace("$${", " ").count("${")))


def placeholder_findings(document: Document) -> Iterator[Finding]:
    """Yield findings about unknown and unclosed placeholders, and about placeholders where none is replaced."""
    steps = document.node(("training", "steps"))
    known = (*PLACEHOLDERS, *(f"steps.{key}" for key in (steps.keys if steps else ())))
    for layer in present_layers(document):
        trainer = document.node((*layer, "trainer"))
        written = trainer.keys if trainer else ()
        for key in TRAINER_KEYS:
            if key in written:
                yield from _check(document, (*layer, "trainer", key), known)
        if layer[:1] in (("overrides",), PROBE):
            yield from _check(document, (*layer, "args"), known)
        for key in ("args", "env"):
            if key in written:
                yield from _unread_variables(document, (*layer, "trainer", key))
        for plain in _PLAIN_KEYS:
            yield from _unreplaced(document, (*layer, *plain))


def _unreplaced(document: Document, section: KeyPath) -> Iterator[Finding]:
    """Yield a warning for each text with a known placeholder, in a section where none is replaced."""
    for path, text in _texts(document, section):
        if any(name in PLACEHOLDERS for _, name in _tokens(text)):
            message = f"{dotted(path)} contains {format_value(text)}, but placeholders are not replaced there"
            hint = f"write the value itself; placeholders are replaced in trainer.{', trainer.'.join(TRAINER_KEYS)}"
            yield document.finding("TPU012", message, path, help=hint)


def _unread_variables(document: Document, section: KeyPath) -> Iterator[Finding]:
    """Yield a warning for each text with a variable in the form of Kubernetes, which no target fills in."""
    for path, text in _texts(document, section, "$("):
        if match := re.search(_VARIABLE, text):
            message = f"{dotted(path)} contains {match[0]}, which reaches the program as this text"
            hint = f'let a shell read the variable: trainer.command [bash, -c, \'... "${match[1]}" "$@"\', --]'
            yield document.finding("TPU012", message, path, help=hint)


def _check(document: Document, path: KeyPath, known: Sequence[str]) -> Iterator[Finding]:
    for text_path, text in _texts(document, path):
        for source, name in _tokens(text):
            if name not in known:
                yield _bad_placeholder(source, name, text_path, document, known)


def _bad_placeholder(
    source: str, name: str | None, path: KeyPath, document: Document, known: Sequence[str]
) -> Finding:
    """Return the finding for an unclosed, an empty or an unknown placeholder."""
    location = document.text_location(path, source)
    if name is None:
        message = f"{dotted(path)} has a ${{ without a closing }}"
        return Finding.of(
            "TPU009",
            message,
            location,
            help="close it with }, or write $${ for the two characters ${",
        )
    shown = format_value(source, quoted=False)
    from tpucfg.schemas.spec_keys import nearest_figure  # here, as most specs have no wrong name

    near = nearest_figure(name, known)
    message = f"{dotted(path)} has the unknown placeholder {shown}"
    hint = f"did you mean ${{{near}}}?" if near else f"write ${shown} if it is meant as text"
    names = [f"${{{key}}}" for key in known]
    return Finding.of(
        "TPU009", message, location, help=hint, details=(f"the placeholders are: {listed(names)}",)
    )


def _texts(document: Document, section: KeyPath, mark: str = "${") -> Iterator[tuple[KeyPath, str]]:
    """Return every parsed text of a section that contains a mark, which an escape may hide in the source."""
    node = document.node(section)
    return _texts_below(node.value, section, mark) if node else iter(())


def _texts_below(value: Any, path: KeyPath, mark: str) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        if mark in value:
            yield path, value
        return
    for step, child in children(value):
        yield from _texts_below(child, (*path, step), mark)
