"""`tpucfg check --stack-outputs`: where a stack and the spec differ."""

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
    "tpuAgent": "service-123456789012@cloud-tpu.iam.gserviceaccount.com",
    "workloadServiceAccount": "tpu-mnist-dev@acme-dev.iam.gserviceaccount.com",
}


def checked(folder: Path, outputs: Any, *arguments: str, **top: Any) -> int:
    """The status of the check of these outputs against the smallest spec."""
    spec, file = specs.write(folder, specs.spec(**top)), folder / "outputs.json"
    file.write_text(outputs if isinstance(outputs, str) else json.dumps(outputs, indent=2))
    return run(["check", "--spec", str(spec), "--stack-outputs", str(file), *arguments])


def test_equal_outputs_are_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The outputs of an up-to-date stack are found to be its environment's, and to be right."""
    assert checked(tmp_path, GOOD) == 0
    assert "stack dev: no findings" in capsys.readouterr().out


@pytest.mark.parametrize("key", GOOD)
def test_missing_output_is_an_error(tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of the six outputs has to be there."""
    outputs = {name: value for name, value in GOOD.items() if name != key}

    assert checked(tmp_path, outputs, "--env", "dev") == 1
    assert f"the stack dev has no output {key}:" in capsys.readouterr().out


@pytest.mark.parametrize("key", [key for key in GOOD if key != "tpuAgent"])
def test_other_output_is_an_error_with_both_places(
    tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An output that the spec foretells otherwise is named with both values, and with the command that ends it."""
    assert checked(tmp_path, {**GOOD, key: "other"}, "--env", "dev", "--format", "json") == 1

    [finding] = json.loads(capsys.readouterr().out)
    assert finding["id"] == "TPU084"
    assert key in finding["message"]
    assert GOOD[key] in finding["message"]
    assert "pulumi up --stack dev" in finding["help"]


def test_account_of_ones_own_is_foretold(tmp_path: Path) -> None:
    """Where the spec names an account, the stack's is that one."""
    own = "trainer@acme-dev.iam.gserviceaccount.com"
    targets = {"vertex-ai": {"service_account": own}}

    assert checked(tmp_path, {**GOOD, "workloadServiceAccount": own}, targets=targets) == 0


def test_outputs_of_nobody_ask_for_the_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where neither bucket nor account is any environment's, the command asks whose stack it is."""
    assert checked(tmp_path, {"bucket": "else"}) == 2
    assert "--env" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", "", "{", "nothing"])
def test_file_that_holds_no_outputs_is_an_error(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no mapping is refused with the command that writes it."""
    assert checked(tmp_path, text) == 1
    assert "pulumi stack output --json" in capsys.readouterr().out
