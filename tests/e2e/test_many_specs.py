"""Hundreds of specs in one command."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from process import COMMAND, ENVIRONMENT, default_signals, run_here, wait_for_reader
from spec_factory import spec

pytestmark = pytest.mark.shell

COUNT: Final = 200


def write_specs(folder: Path, **changes: dict[str, Any]) -> list[str]:
    """Write the specs, with changes by name and a warning in every tenth, and return their options."""
    for number in range(COUNT):
        name = f"p-{number}"
        data = spec(
            name=name,
            sizes=["v2-8", "v2-32"],
            **({} if number % 10 else {"training__train_steps": 200}),
        )
        (folder / f"{name}.yaml").write_text(json.dumps({**data, **changes.get(name, {})}))
    return [word for number in range(COUNT) for word in ("--spec", f"p-{number}.yaml")]


def start(folder: Path, *arguments: str, stdin: int | None = None) -> "subprocess.Popen[str]":
    """Start the command in a folder."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )


def wait(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Return the exit status and the outputs."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def files(folder: Path) -> dict[str, str]:
    """Return every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["yaml", "json"])
def test_files_and_standard_output_agree(tmp_path: Path, format_: str) -> None:
    """Both have every config once; the specs with warnings are named in their order."""
    options = write_specs(tmp_path)
    status, out, err = wait(start(tmp_path, "render", "--format", format_, *options))
    assert status == 0
    warned = [line.split(":")[0] for line in err.splitlines() if ": warning[TPU042]: " in line]
    assert warned == [f"p-{number}.yaml" for number in range(0, COUNT, 10)]
    assert wait(start(tmp_path, "render", "--format", format_, *options, "--out", "out"))[0] == 0
    written = files(tmp_path / "out")
    assert len(written) == 2 * COUNT
    assert all(text in out for text in written.values())


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"sizes": ["v2-32", "v9-8"]}, 1, "error[TPU020]"),
        ({"sizes": ["v2-8"]}, 2, "v2-32 is in no ladder"),
        ({"name": "p-7"}, 1, "error[TPU131]: dev creates the bucket"),
    ],
)
def test_an_error_in_one_spec_writes_nothing(
    tmp_path: Path, changes: dict[str, Any], status: int, message: str
) -> None:
    """A spec in the middle that cannot be rendered is reported, and no config of any spec is written."""
    options = write_specs(tmp_path, **{"p-123": changes})
    returncode, _, err = wait(
        start(tmp_path, "render", "--size", "v2-32", "--out", "out", *options)
    )
    assert returncode == status
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


def test_the_errors_of_all_specs_are_reported(tmp_path: Path) -> None:
    """One run reports the errors of every spec."""
    options = write_specs(tmp_path, **{name: {"sizes": ["v9-8"]} for name in ("p-3", "p-123")})
    status, out, err = wait(start(tmp_path, "render", "--out", "out", *options))
    assert (status, out) == (1, "")
    assert [line.split(":")[0] for line in err.splitlines() if "error[TPU020]" in line] == [
        "p-3.yaml",
        "p-123.yaml",
    ]
    assert not (tmp_path / "out").exists()


def test_ctrl_c_writes_nothing(tmp_path: Path) -> None:
    """An interrupted run exits with the status of Ctrl-C, prints no traceback and writes no file."""
    read_end, write_end = os.pipe()
    options = [*write_specs(tmp_path), "--spec", "/dev/stdin"]
    with default_signals():
        process = start(tmp_path, "render", "--out", "out", *options, stdin=read_end)
    os.close(read_end)
    os.write(
        write_end, b"#" * 100_000
    )  # more than a pipe buffers: returns once the command reads the last spec
    wait_for_reader(process, write_end)
    process.send_signal(signal.SIGINT)
    status, out, err = wait(process)
    os.close(write_end)
    assert (status, out) == (130, "")
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Return a folder with two specs of equal names and buckets."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(json.dumps(spec(), indent=1))
    return tmp_path


def with_second(
    folder: Path, *command: str, environment: dict[str, Any], **changes: Any
) -> tuple[int, str]:
    """Return the status and the findings of a command on both specs, the second one changed."""
    second = spec(**changes)
    second["environments"]["dev"] |= environment
    (folder / "b.yaml").write_text(json.dumps(second, indent=1))
    done = run_here(folder, *command, "--spec", "a.yaml", "--spec", "b.yaml")
    return done.returncode, done.stdout if command[0] == "check" else done.stderr


@pytest.mark.parametrize("command", [("check",), ("render",), ("render", "--out", "out")])
def test_a_bucket_that_two_specs_create_is_an_error(pair: Path, command: tuple[str, ...]) -> None:
    """Commands that read both refuse it and write nothing; the edit that the help shows resolves it."""
    bucket = "my-project-dev-mnist-dev-us-central1"
    status, text = with_second(pair, *command, environment={"bucket": bucket})
    assert (status, text.count("error[TPU131]")) == (1, 1)
    assert (
        f"b.yaml:13:14: error[TPU131]: dev creates the bucket {bucket}, as does dev in a.yaml: "
        in text
    )
    assert f"help: set environments.dev.bucket to {{name: {bucket}, create: false}}" in text
    assert not (pair / "out").exists()
    status, text = with_second(
        pair, *command, name="other", environment={"bucket": {"name": bucket, "create": False}}
    )
    assert (status, "TPU131" in text, "TPU126" in text) == (0, False, False)


@pytest.mark.parametrize(
    ("name", "environment", "id_"),
    [
        ("mnist", "dev", "error[TPU136]"),
        ("mnist-dev", "dev", ""),
        ("other", "dev", "warning[TPU137]"),
    ],
)
def test_stacks_with_equal_names_or_grants_are_found(
    pair: Path, name: str, environment: str, id_: str
) -> None:
    """One of two stacks would find names taken, or take grants from the other when it is destroyed."""
    account = {"targets": {"vertex-ai": {"service_account": "t@a.iam.gserviceaccount.com"}}}
    own = {} if name == "mnist" else account
    first = spec()
    first["environments"][environment] |= {"reads": {"gs://data": "us-central1"}, **own}
    (pair / "a.yaml").write_text(json.dumps(first, indent=1))
    other = {"bucket": "another", "reads": {"gs://data": "us-central1"}}
    own = account if name == "other" else {}
    _, text = with_second(pair, "check", name=name, environment={**other, **own})
    assert [line for line in text.splitlines() if "TPU136" in line or "TPU137" in line] == [
        line for line in text.splitlines() if id_ and "b.yaml:" in line and f": {id_}: " in line
    ]
    assert bool(id_) == ("TPU13" in text)


def test_specs_of_one_name_and_different_buckets_have_the_same_files(pair: Path) -> None:
    """Rendered below one folder, they would overwrite each other's configs: wrong use of the command."""
    status, text = with_second(pair, "render", "--out", "out", environment={"bucket": "another"})
    assert (status, "2 of the specs have the name mnist" in text) == (2, True)
    assert not (pair / "out").exists()


@pytest.mark.parametrize("command", ["check", "render"])
def test_two_specs_with_the_same_folders_are_a_warning(pair: Path, command: str) -> None:
    """The name and the bucket decide on the folders; a warning stops nothing, and another name ends it."""
    shared = {"bucket": {"name": "my-project-dev-mnist-dev-us-central1", "create": False}}
    status, text = with_second(pair, command, environment=shared)
    assert text.count("warning[TPU126]: dev has the folders of dev in a.yaml: gs://") == 1
    # Their stacks would have one account, which only `check` reports.
    assert status == (1 if command == "check" else 0)
    assert "TPU126" not in with_second(pair, command, environment=shared, name="another")[1]
    allowed = with_second(pair, command, environment=shared, allow={"TPU126": "one of them runs"})[
        1
    ]
    assert "TPU013" not in allowed
    assert "warning[TPU126]" not in allowed
