"""`tpucfg check --stack-outputs`: differences between a stack and the spec."""

import json
from pathlib import Path
from typing import Any

import pytest
import specs

from tpucfg.cli.app import run

GOOD = {
    "bucket": "acme-dev-mnist-dev-us-central1",
    "bucketUrl": "gs://acme-dev-mnist-dev-us-central1",
    "region": "us-central1",
    "project": "acme-dev",
    "workloadServiceAccount": "tpu-mnist-dev@acme-dev.iam.gserviceaccount.com",
}


def check_outputs(folder: Path, outputs: Any, *arguments: str, **top: Any) -> int:
    """Return the exit status of checking these outputs against a minimal spec."""
    spec, file = specs.write(folder, specs.spec(**top)), folder / "outputs.json"
    file.write_text(outputs if isinstance(outputs, str) else json.dumps(outputs, indent=2))
    return run(["check", "--spec", str(spec), "--stack-outputs", str(file), *arguments])


def test_outputs_equal_to_the_spec_have_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The outputs of an up-to-date stack identify its environment and have no finding."""
    assert check_outputs(tmp_path, GOOD) == 0
    assert "stack dev: no findings" in capsys.readouterr().out


@pytest.mark.parametrize("key", GOOD)
def test_missing_output_is_an_error(
    tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the five outputs is required."""
    outputs = {name: value for name, value in GOOD.items() if name != key}

    assert check_outputs(tmp_path, outputs, "--env", "dev") == 1
    assert f"the stack dev has no output {key}:" in capsys.readouterr().out


@pytest.mark.parametrize("key", GOOD)
def test_different_output_is_an_error_with_both_values(
    tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An output that differs from the spec is reported with both values and the command that updates the stack."""
    assert check_outputs(tmp_path, {**GOOD, key: "other"}, "--env", "dev", "--format", "json") == 1

    [finding] = json.loads(capsys.readouterr().out)
    assert finding["id"] == "TPU084"
    assert key in finding["message"]
    assert GOOD[key] in finding["message"]
    assert "pulumi up --stack dev" in finding["help"]


def test_account_named_in_the_spec_is_expected(tmp_path: Path) -> None:
    """An account named in the spec is the expected output."""
    account = "trainer@acme-dev.iam.gserviceaccount.com"
    targets = {"vertex-ai": {"service_account": account}}

    assert (
        check_outputs(tmp_path, {**GOOD, "workloadServiceAccount": account}, targets=targets) == 0
    )


@pytest.mark.parametrize(
    "option", [("--size", "v2-8"), ("--target", "gke"), ("--config", "outputs.json")]
)
def test_options_that_would_change_nothing_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    """An option about jobs or configs is not dropped silently."""
    assert check_outputs(tmp_path, GOOD, *option) == 2
    assert "it takes no" in capsys.readouterr().err


def test_outputs_of_an_unknown_environment_require_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a known bucket or account, the command requires `--env`."""
    assert check_outputs(tmp_path, {"bucket": "other"}) == 2
    assert "--env" in capsys.readouterr().err


def test_environment_that_the_spec_lacks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelled environment is refused with the one that is meant, as by the other commands."""
    assert check_outputs(tmp_path, GOOD, "--env", "devv") == 2
    assert "there is no environment devv; did you mean dev?" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", "", "{", "nothing"])
def test_file_without_outputs_is_an_error(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not a mapping is rejected with the command that writes one."""
    assert check_outputs(tmp_path, text) == 1
    assert "pulumi stack output --json" in capsys.readouterr().out
