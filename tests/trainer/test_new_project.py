import ast
import json
import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement

import trainers
from spec_factory import ROOT, project
from tpucfg.cli.app import run
from tpucfg.scaffold import TRAINERS

KINDS = [(framework, target) for framework, targets in TRAINERS.items() for target in targets]
each_kind = pytest.mark.parametrize(
    ("framework", "target"), KINDS, ids=[f"{framework}-{target}" for framework, target in KINDS]
)


@each_kind
def test_new_project_has_no_findings(
    framework: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new project passes its own check; the only findings are a service that ended, and a fit that is not known."""
    project = trainers.new(tmp_path / "mnist", framework, target, quick=False)
    capsys.readouterr()

    assert run(["check", "--spec", str(project.folder / "tpucfg.yaml"), "--format", "json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    expected = {"ai-platform": ["TPU060"]}.get(
        target, ["TPU107", "TPU107"] if framework == "jax" else []
    )
    assert [finding["id"] for finding in findings] == expected


@each_kind
def test_trainer_accepts_the_flags_of_every_rung(
    framework: str, target: str, tmp_path: Path
) -> None:
    """The trainer accepts the exact flags of the configs, for every target."""
    project = trainers.new(tmp_path / "mnist", framework, target, quick=False)
    project = project._replace(python=trainers.PYTHONS["jax"])  # the flags need neither framework
    (project.folder / "print_flags.py").write_text(
        "import sys\nfrom trainer.flags import parse\nprint(parse(sys.argv[1:]))\n"
    )

    for size in TRAINERS[framework][target].sizes:
        (printed,) = project.run(project.flags(size), "print_flags").lines
        for flag in project.flags(size):
            name, value = flag.removeprefix("--").split("=")
            assert re.search(rf"\b{name}='?{re.escape(value)}'?[,)]", printed), (flag, printed)


def test_folder_may_end_with_a_slash(tmp_path: Path) -> None:
    """A folder in the spec may end with a slash, although `data//mnist.npz` is another object in a bucket."""
    project = trainers.new(tmp_path / "mnist", "jax")
    (project.folder / "print_flags.py").write_text(
        "import sys\nfrom trainer.flags import parse\nprint(parse(sys.argv[1:]))\n"
    )

    (printed,) = project.run(
        [*project.flags("v2-8"), "--data_dir=gs://b/data/", "--model_dir=/"], "print_flags"
    ).lines
    assert "data_dir='gs://b/data', model_dir='/'" in printed


def test_trainer_accepts_epochs(tmp_path: Path) -> None:
    """A spec may have epochs instead of steps; the trainer accepts one of the two, but not both."""
    project = trainers.new(tmp_path / "mnist", "jax")
    spec = project.folder / "tpucfg.yaml"
    spec.write_text(spec.read_text().replace("train_steps: 200", "epochs: 3"))
    (project.folder / "print_flags.py").write_text(
        "import sys\nfrom trainer.flags import parse\nprint(parse(sys.argv[1:]))\n"
    )

    (printed,) = project.run(project.flags("v2-8"), "print_flags").lines
    assert "train_steps=None, epochs=Fraction(3, 1)" in printed
    process = project.start("print_flags", [*project.flags("v2-8"), "--train_steps=5"])
    assert "not allowed with argument --epochs" in process.communicate()[1]
    assert process.returncode == 2


@pytest.mark.parametrize(
    ("epochs", "steps"),
    [
        ("2.5", 625),
        ("1e1", 2500),
        ("+1.1", 275),
        (".5", 125),
        ("5.", 1250),
        ("2.5001", 626),
        ("1e-300", 1),
    ],
)
def test_number_of_epochs_determines_the_steps(tmp_path: Path, epochs: str, steps: int) -> None:
    """The trainer accepts the spec's numbers of epochs, and runs the minimum number of steps for them."""
    project = trainers.new(tmp_path / "mnist", "jax")
    spec = project.folder / "tpucfg.yaml"
    spec.write_text(spec.read_text().replace("train_steps: 200", f"epochs: {epochs}"))
    parse_flags = "import sys\nfrom trainer.flags import parse\nflags = parse(sys.argv[1:])\n"
    (project.folder / "print_flags.py").write_text(
        f"{parse_flags}print(flags._replace(batch_size=240).steps_left(0, 0, 60_000))\n"
    )

    assert project.run(project.flags("v2-8"), "print_flags").lines == [str(steps)]


@pytest.mark.parametrize(
    "epochs", ["0", "0.0", "-1", "nan", "inf", "1e9999999", "1/2", "two", "0x10", ""]
)
def test_invalid_number_of_epochs_is_rejected(tmp_path: Path, epochs: str) -> None:
    """A value that is not a decimal number above 0 ends the trainer with a message."""
    project = trainers.new(tmp_path / "mnist", "jax")
    flags = [flag for flag in project.flags("v2-8") if not flag.startswith("--train_steps")]
    process = project.start("trainer", [*flags, f"--epochs={epochs}"])
    assert f"{epochs!r} is not a number above 0" in process.communicate()[1]
    assert process.returncode == 2


PARSE: Final = """
import contextlib, io, json, sys
from trainer.flags import parse

for line in sys.stdin:
    with contextlib.redirect_stderr(io.StringIO()) as message, contextlib.suppress(SystemExit):
        parse(json.loads(line))
    print(json.dumps(message.getvalue()))
"""
"""Parses the flags of each line of stdin, and prints the messages."""


def test_invalid_flags_have_readable_messages(tmp_path: Path) -> None:
    """The message for an invalid flag contains no internals of the program."""
    project = trainers.new(tmp_path / "mnist", "jax")
    names = ("batch_size", "train_steps", "warmup_steps", "learning_rate")
    rows = [*product(names, ("x", "-1", "1.5.2", "nan", "9" * 5000, ""))]
    flags = project.flags("v2-8")
    completed = subprocess.run(
        [project.python, "-c", PARSE],
        cwd=project.folder,
        input="\n".join(json.dumps([*flags, f"--{name}={text}"]) for name, text in rows),
        capture_output=True,
        text=True,
        check=True,
    )
    messages = map(json.loads, completed.stdout.splitlines())
    for (name, text), message in zip(rows, messages, strict=True):
        kind = "number above 0" if name == "learning_rate" else "whole number of"
        assert f"argument --{name}: " in message, text
        assert f" is not a {kind}" in message
        assert "_" not in message.partition(f"argument --{name}: ")[2]


@each_kind
def test_dockerfile_builds_the_image_of_the_spec(
    framework: str, target: str, tmp_path: Path
) -> None:
    """The Dockerfile has the command that builds the spec's image, a pinned base, and the files of .dockerignore."""
    folder = trainers.new(tmp_path / "mnist", framework, target).folder
    image = project((folder / "tpucfg.yaml").read_text()).base.trainer.image
    lines = (folder / "trainer" / "Dockerfile").read_text().splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]

    assert f"#   docker build --platform=linux/amd64 --tag={image} trainer" in lines
    assert f"#   docker push {image}" in lines
    assert [
        re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", line[1]) is not None
        for line in words
        if line[0] == "FROM"
    ] == [True]
    assert json.loads(lines[-1].removeprefix("ENTRYPOINT ")) == ["python", "-m", "trainer"]
    copied = {line[1] for line in words if line[0] == "COPY"}
    assert copied == {"requirements.txt", "*.py"}
    assert (folder / "trainer" / ".dockerignore").read_text().split() == [
        "*",
        *(f"!{name}" for name in sorted(copied)),
    ]
    assert {"RUN", "WORKDIR"} < {line[0] for line in words}


@each_kind
def test_image_has_pinned_versions(framework: str, target: str, tmp_path: Path) -> None:
    """Each requirement is pinned to a version or a file; for JAX, to the versions of these tests."""
    text = (
        trainers.new(tmp_path / "mnist", framework, target).folder / "trainer" / "requirements.txt"
    ).read_text()
    lines = [
        line.partition(" #")[0].strip() for line in text.splitlines() if not line.startswith("#")
    ]
    requirements = [Requirement(line) for line in lines]

    assert all(
        entry.url or re.fullmatch(r"==[0-9.]+", str(entry.specifier)) for entry in requirements
    )
    if framework == "jax":
        lock = (ROOT / "requirements-dev.txt").read_text()
        for entry in requirements:
            assert re.search(
                rf"^{entry.name}{re.escape(str(entry.specifier))}( ; python_full_version < '3.12')? ",
                lock,
                re.MULTILINE,
            )


@pytest.mark.parametrize(
    "path", sorted((ROOT / "templates" / "trainer").rglob("*.py")), ids=lambda path: path.name
)
def test_modules_are_valid_in_old_python(path: Path) -> None:
    """Modules that run on AI Platform Training are valid in its Python 3.7."""
    if path.parent.name != "jax":
        ast.parse(path.read_text(), feature_version=(3, 7))


def test_a_project_may_have_its_own_trainer(tmp_path: Path) -> None:
    """A project with its own trainer gets no other trainer and no flags for it."""
    assert run(["init", str(tmp_path / "mnist")]) == 0

    assert not (tmp_path / "mnist" / "trainer").exists()
    assert "hosts" not in (tmp_path / "mnist" / "tpucfg.yaml").read_text()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An existing file of the trainer stops the whole command."""
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "data.py").write_text("mine")

    assert run(["init", str(tmp_path), "--name", "mnist", "--trainer", "jax"]) == 1
    assert (
        f"these files exist with another content, and nothing was written:\n  {tmp_path}/trainer/data.py"
        in capsys.readouterr().err
    )
    assert [path.name for path in tmp_path.rglob("*.*")] == ["data.py"]


def test_trainer_that_the_target_does_not_run_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The two options have to match, and the message names a valid combination."""
    assert run(["init", str(tmp_path / "a"), "--target", "ai-platform", "--trainer", "jax"]) == 2
    message = capsys.readouterr().err
    assert "ai-platform cannot run the trainer for jax, only that for tensorflow" in message
    assert (
        "choose --trainer tensorflow, or one of the targets vertex-ai, cloud-tpu, compute-engine, gke"
        in message
    )

    assert run(["init", str(tmp_path / "a"), "--trainer", "torch"]) == 2
    assert (
        "--trainer cannot be torch\nhelp: give one of: jax, tensorflow" in capsys.readouterr().err
    )
    assert not (tmp_path / "a").exists()


def test_name_too_long_for_the_accounts_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The longest name that is accepted makes a project without errors, and one more character is refused."""
    assert run(["init", str(tmp_path / "a"), "--name", "n" * 22]) == 2
    assert (
        "cannot be the project's name: a name has 1 to 21 lower-case letters"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "a").exists()

    assert run(["init", str(tmp_path / "a"), "--name", "n" * 21]) == 0
    assert run(["check", "--spec", str(tmp_path / "a" / "tpucfg.yaml")]) == 0
