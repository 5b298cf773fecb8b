"""Texts that are read: specs, configs, stack files, outputs of a stack."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any, Final

from fuzz import corpus
from fuzz.cases import Case, Entry
from fuzz.changes import changed, commented, otherwise, written
from fuzz.trying import Ended, Shell, judged
from tpucfg.findings.formats import FORMATS
from tpucfg.targets import TARGETS
from tpucfg.yamldoc.reader import read_bytes
from tpucfg.yamldoc.writer import yaml_scalar

Made = tuple[tuple[Entry, ...], tuple[str, ...]]

SPEC: Final = "tpucfg.yaml"
_TARGET: Final = re.compile(r"target ([a-z-]+)\.$", re.MULTILINE)
_ORDERED: Final = ("args",)
"""Mappings of a spec whose order means something: the flags of the program."""


def make_spec(rng: Random) -> Made:
    """A spec, broken or only otherwise written."""
    if rng.random() < 0.1:
        data = read_bytes(rng.choice(corpus.right_specs()), SPEC).data
        return (Entry(SPEC, "file", written(rng, otherwise(rng, data, _ORDERED))),), ()
    return (Entry(SPEC, "file", changed(rng, rng.choice(corpus.specs()))),), ()


def prove_spec(case: Case, rng: Random, tpucfg: Shell) -> None:
    """It is refused by every command, or accepted by every command."""
    content = case.entries[0].content
    checked = tpucfg("check", "--spec", SPEC, "--format", "json")
    found = judged(checked, {SPEC: content})
    other = _other_command(rng, content)
    if checked.status:
        refused = tpucfg(*other)
        narrowed = any(word.startswith(("--env", "--target")) for word in other)  # past what is wrong, perhaps
        assert refused.status or narrowed, f"check refuses the spec and {other} does not: {found} {refused}"
    elif checked.status == 0:
        _prove_accepted(content, rng, tpucfg)
        accepted = tpucfg(*other)
        assert accepted.status in (0, 1, 2), accepted


def _other_command(rng: Random, content: bytes) -> tuple[str, ...]:
    """Any command that reads a spec; of its environments and sizes, some."""
    data = read_bytes(content, SPEC).data
    named = data.get("environments") if isinstance(data, dict) else None
    environment = rng.choice([*(named if isinstance(named, dict) and named else {"dev": 1})])
    chosen = [f"--env={environment}"] if rng.random() < 0.5 else []
    return (
        *rng.choice(
            [
                ("check", f"--format={rng.choice(list(FORMATS))}"),
                ("render", f"--format={rng.choice(['yaml', 'json'])}"),
                ("ladder", f"--format={rng.choice(['text', 'markdown', 'json', 'svg', 'html'])}"),
                ("why", rng.choice(["batch_size", "--train_steps", "labels", "trainingInput.args.0", "x", "a[0].b"])),
                ("submit", f"--target={rng.choice(list(TARGETS))}"),
                ("submit", "--run=a1"),
            ]
        ),
        "--spec",
        SPEC,
        *chosen,
    )


def _prove_accepted(content: bytes, rng: Random, tpucfg: Shell) -> None:
    """What is accepted is rendered; each config is accepted by itself; how the spec is laid out changes none."""
    printed = tpucfg("render", "--spec", SPEC)
    assert printed.status == 0, f"check accepts the spec and render does not: {printed}"
    for config in rng.sample(documents := _documents(printed), min(len(documents), 2)):
        Path("made.yaml").write_text(config, encoding="utf-8")
        target = _TARGET.search(config)
        assert target, config
        again = tpucfg("check", "--config", "made.yaml", "--target", target[1])
        assert again.status == 0, f"a rendered config is refused: {again}"
    if rng.random() < 0.5:
        _prove_layout_is_nothing(content, rng, tpucfg)


def _documents(printed: Ended) -> list[str]:
    return re.split(r"^---\n(?=# Made by)", printed.out, flags=re.MULTILINE)


def _prove_layout_is_nothing(content: bytes, rng: Random, tpucfg: Shell) -> None:
    """The order of keys, comments, blanks, and the choice between YAML and JSON are not in the configs."""
    data = read_bytes(content, SPEC).data
    moved = otherwise(rng, data, _ORDERED)
    first, *others = (
        "\n".join(_block(data)).encode(),
        commented(rng, "\n".join(_block(moved)).encode()),
        json.dumps(moved).encode(),
    )
    Path(SPEC).write_bytes(first)
    wanted = tpucfg("render", "--spec", SPEC)
    for other in others:
        Path(SPEC).write_bytes(other)
        rendered = tpucfg("render", "--spec", SPEC)
        assert (rendered.status, rendered.out) == (wanted.status, wanted.out), f"{other!r} {wanted} {rendered}"


def _block(data: Any, indent: str = "") -> list[str]:
    """The data in block style, each value on a line of its own, so that a comment can follow every line."""
    below = indent + "  "
    rows = []
    pairs = data.items() if isinstance(data, dict) else (("-", item) for item in data)
    for key, value in pairs:
        head = f"{indent}{yaml_scalar(key)}:" if isinstance(data, dict) else f"{indent}-"
        if isinstance(value, dict | list) and value:
            rows += [head, *_block(value, below)]
        else:
            # A number as JSON has it too: the configs have it as it is written.
            rows.append(f"{head} {yaml_scalar(value) if isinstance(value, str) else json.dumps(value)}")
    return rows


def make_config(rng: Random) -> Made:
    """A config of one target, at times given to another."""
    content, target = rng.choice(corpus.configs())
    target = rng.choice([target, target, target, rng.choice(list(TARGETS))])
    return (Entry("config.yaml", "file", changed(rng, content)),), ("--target", target)


def prove_config(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Each finding is at a place of the config, and all formats say the same."""
    words = ("check", "--config", "config.yaml", *case.words)
    judged(checked := tpucfg(*words, "--format", "json"), {"config.yaml": case.entries[0].content})
    assert tpucfg(*words, "--format", rng.choice(list(FORMATS))).status == checked.status


def make_stack(rng: Random) -> Made:
    """A right spec with stack files, of which one is broken, or Pulumi.yaml is."""
    project, stack = rng.choice(corpus.pulumi_projects()), rng.choice(corpus.stacks())
    if rng.random() < 0.2:
        project = changed(rng, project)
    else:
        stack = changed(rng, stack)
    name = rng.choice(["dev", "dev", "dev", "prod", "develop", "-rf", "$(id)", "a b", "../x", "é", "{{7*7}}", "a\nb"])
    spec = corpus.right_specs()[-1]
    return (
        Entry(SPEC, "file", spec),
        Entry("Pulumi.yaml", "file", project),
        Entry(f"stacks/Pulumi.{name}.yaml", "file", stack),
    ), ()


def prove_stack(case: Case, rng: Random, tpucfg: Shell) -> None:
    """What is wrong is said beside the spec's findings."""
    checked = tpucfg("check", "--format", "json")
    judged(checked, {entry.path: entry.content for entry in case.entries})
    assert tpucfg("check", "--format", rng.choice(list(FORMATS))).status == checked.status


def make_outputs(rng: Random) -> Made:
    """A right spec, and outputs of its stack with something broken."""
    bad = corpus.BAD / "TPU084-other-bucket"
    return (
        Entry(SPEC, "file", (bad / SPEC).read_bytes()),
        Entry("outputs.json", "file", changed(rng, (bad / "outputs.json").read_bytes())),
    ), rng.choice([(), ("--env", "dev")])


def prove_outputs(case: Case, rng: Random, tpucfg: Shell) -> None:
    """They are compared with the spec, or it is said why they cannot be."""
    words = ("check", "--stack-outputs", "outputs.json", *case.words)
    checked = tpucfg(*words, "--format", "json")
    if checked.status in (0, 1):
        judged(checked, {entry.path: entry.content for entry in case.entries})
    assert tpucfg(*words, "--format", rng.choice(list(FORMATS))).status == checked.status
