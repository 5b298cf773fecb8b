"""Mutated texts: specs, configs, stack files and stack outputs."""

import json
import re
from pathlib import Path
from random import Random
from typing import Any, Final

from fuzz import corpus
from fuzz.cases import Case, Entry
from fuzz.mutations import add_comments, mutate, serialize, shuffle_keys
from fuzz.shell import Completed, Shell, check_findings
from tpucfg.findings import FORMATS
from tpucfg.targets import TARGETS
from tpucfg.yamldoc.reader import read_bytes
from tpucfg.yamldoc.writer import yaml_scalar

Parts = tuple[tuple[Entry, ...], tuple[str, ...]]

SPEC: Final = "tpucfg.yaml"
_TARGET: Final = re.compile(r"target ([a-z-]+)\.$", re.MULTILINE)
_ORDERED: Final = ("args",)
"""Mappings of a spec whose order matters: the flags of the program."""


def make_spec(rng: Random) -> Parts:
    """Return a mutated or reordered spec."""
    if rng.random() < 0.1:
        data = read_bytes(rng.choice(corpus.valid_specs()), SPEC).data
        return (Entry(SPEC, "file", serialize(rng, shuffle_keys(rng, data, _ORDERED))),), ()
    return (Entry(SPEC, "file", mutate(rng, rng.choice(corpus.specs()))),), ()


def check_spec(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Check that every command rejects the spec, or that every command accepts it."""
    content = case.entries[0].content
    checked = tpucfg("check", "--spec", SPEC, "--format", "json")
    findings = check_findings(checked, {SPEC: content})
    other = _other_command(rng, content)
    if checked.status:
        refused = tpucfg(*other)
        narrowed = any(
            word.startswith(("--env", "--target")) for word in other
        )  # perhaps without the invalid part
        assert refused.status or narrowed, (
            f"check refuses the spec and {other} does not: {findings} {refused}"
        )
    elif checked.status == 0:
        _check_accepted(content, rng, tpucfg)
        accepted = tpucfg(*other)
        assert accepted.status in (0, 1, 2), accepted


def _other_command(rng: Random, content: bytes) -> tuple[str, ...]:
    """Return a random command that reads a spec, with some of its environments and sizes."""
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
                (
                    "why",
                    rng.choice(
                        [
                            "batch_size",
                            "--train_steps",
                            "labels",
                            "trainingInput.args.0",
                            "x",
                            "a[0].b",
                        ]
                    ),
                ),
                ("submit", f"--target={rng.choice(list(TARGETS))}"),
                ("submit", "--run=a1"),
            ]
        ),
        "--spec",
        SPEC,
        *chosen,
    )


def _check_accepted(content: bytes, rng: Random, tpucfg: Shell) -> None:
    """Check that a valid spec renders, that each config is valid, and that the spec's layout does not matter."""
    printed = tpucfg("render", "--spec", SPEC)
    assert printed.status == 0, f"check accepts the spec and render does not: {printed}"
    for config in rng.sample(documents := _documents(printed), min(len(documents), 2)):
        Path("made.yaml").write_text(config, encoding="utf-8")
        target = _TARGET.search(config)
        assert target, config
        again = tpucfg("check", "--config", "made.yaml", "--target", target[1])
        assert again.status == 0, f"a rendered config is rejected: {again}"
    if rng.random() < 0.5:
        _check_layout_is_irrelevant(content, rng, tpucfg)


def _documents(printed: Completed) -> list[str]:
    return re.split(r"^---\n(?=# Made by)", printed.out, flags=re.MULTILINE)


def _check_layout_is_irrelevant(content: bytes, rng: Random, tpucfg: Shell) -> None:
    """Check that key order, comments, blanks, and the choice of YAML or JSON do not affect the configs."""
    data = read_bytes(content, SPEC).data
    moved = shuffle_keys(rng, data, _ORDERED)
    first, *others = (
        "\n".join(_block(data)).encode(),
        add_comments(rng, "\n".join(_block(moved)).encode()),
        json.dumps(moved).encode(),
    )
    Path(SPEC).write_bytes(first)
    expected = tpucfg("render", "--spec", SPEC)
    for other in others:
        Path(SPEC).write_bytes(other)
        rendered = tpucfg("render", "--spec", SPEC)
        assert (rendered.status, rendered.out) == (expected.status, expected.out), (
            f"{other!r} {expected} {rendered}"
        )


def _block(data: Any, indent: str = "") -> list[str]:
    """Return the data in block style with one value per line, so that a comment can follow every line."""
    below = indent + "  "
    rows = []
    pairs = data.items() if isinstance(data, dict) else (("-", item) for item in data)
    for key, value in pairs:
        head = f"{indent}{yaml_scalar(key)}:" if isinstance(data, dict) else f"{indent}-"
        if isinstance(value, dict | list) and value:
            rows += [head, *_block(value, below)]
        else:
            # Numbers in the format of JSON: the configs keep a number's format.
            rows.append(
                f"{head} {yaml_scalar(value) if isinstance(value, str) else json.dumps(value)}"
            )
    return rows


def make_config(rng: Random) -> Parts:
    """Return a mutated config of one target, sometimes for another target."""
    content, target = rng.choice(corpus.configs())
    target = rng.choice([target, target, target, rng.choice(list(TARGETS))])
    return (Entry("config.yaml", "file", mutate(rng, content)),), ("--target", target)


def check_config(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Check that each finding has a location in the config, and that all formats agree."""
    words = ("check", "--config", "config.yaml", *case.words)
    check_findings(
        checked := tpucfg(*words, "--format", "json"), {"config.yaml": case.entries[0].content}
    )
    assert tpucfg(*words, "--format", rng.choice(list(FORMATS))).status == checked.status


def make_stack(rng: Random) -> Parts:
    """Return a valid spec with stack files, one of which is mutated, or Pulumi.yaml."""
    project, stack = rng.choice(corpus.pulumi_projects()), rng.choice(corpus.stacks())
    if rng.random() < 0.2:
        project = mutate(rng, project)
    else:
        stack = mutate(rng, stack)
    name = rng.choice(
        [
            "dev",
            "dev",
            "dev",
            "prod",
            "develop",
            "-rf",
            "$(id)",
            "a b",
            "../x",
            "é",
            "{{7*7}}",
            "a\nb",
        ]
    )
    spec = corpus.valid_specs()[-1]
    return (
        Entry(SPEC, "file", spec),
        Entry("Pulumi.yaml", "file", project),
        Entry(f"stacks/Pulumi.{name}.yaml", "file", stack),
    ), ()


def check_stack(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Check that errors of stack files are reported with the spec's findings."""
    checked = tpucfg("check", "--format", "json")
    check_findings(checked, {entry.path: entry.content for entry in case.entries})
    assert tpucfg("check", "--format", rng.choice(list(FORMATS))).status == checked.status


def make_outputs(rng: Random) -> Parts:
    """Return a valid spec with mutated outputs of its stack."""
    bad = corpus.BAD / "TPU084-other-bucket"
    return (
        Entry(SPEC, "file", (bad / SPEC).read_bytes()),
        Entry("outputs.json", "file", mutate(rng, (bad / "outputs.json").read_bytes())),
    ), rng.choice([(), ("--env", "dev")])


def check_outputs(case: Case, rng: Random, tpucfg: Shell) -> None:
    """Check that the outputs are compared with the spec, or rejected."""
    words = ("check", "--stack-outputs", "outputs.json", *case.words)
    checked = tpucfg(*words, "--format", "json")
    if checked.status in (0, 1):
        check_findings(checked, {entry.path: entry.content for entry in case.entries})
    assert tpucfg(*words, "--format", rng.choice(list(FORMATS))).status == checked.status
