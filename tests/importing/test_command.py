"""The command `tpucfg import`: its streams and its exit status."""

from pathlib import Path

import pytest
import yaml

from spec_factory import ROOT
from tpucfg.cli.app import run

EXAMPLE = ROOT / "examples" / "import" / "jobset.yaml"


def plain(tmp_path: Path) -> Path:
    """Return a JobSet of which everything is carried over."""
    data = yaml.safe_load(EXAMPLE.read_text())
    container = data["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    del container["ports"], container["securityContext"]
    path = tmp_path / "jobset.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def test_a_complete_import_succeeds_and_renders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With every gap filled in and nothing lost, the status is 0, stderr is empty, and the spec is valid."""
    assert (
        run(
            [
                "import",
                str(plain(tmp_path)),
                "--project",
                "my-project",
                "--region",
                "us-east5",
                "--env",
                "lab",
            ]
        )
        == 0
    )
    output = capsys.readouterr()
    assert output.err == ""
    (tmp_path / "tpucfg.yaml").write_text(output.out)
    assert run(["check", "--spec", str(tmp_path / "tpucfg.yaml"), "--env", "lab"]) == 0


def test_a_gap_is_marked_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing value is marked in the spec and named on stderr, and the status is 1."""
    assert run(["import", str(plain(tmp_path)), "--project", "my-project"]) == 1
    output = capsys.readouterr()
    assert "    region: null  # fill in\n" in output.out
    assert output.err.endswith("fill in environments.dev.region\n")


def test_a_lost_field_is_listed_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """A lost field is listed with path and reason, and the status is 1."""
    assert run(["import", str(EXAMPLE), "--project", "my-project", "--region", "us-east5"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[0].endswith("jobset.yaml: 2 differences from the file")
    assert ".containers.0.ports: a list of ports opens none" in errors[2]


def test_a_name_that_no_environment_has_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    """The name would be an error of the spec, with which no field can be compared."""
    assert run(["import", str(EXAMPLE), "--env", "Prod"]) == 2
    output = capsys.readouterr()
    assert (output.out, "--env is" in output.err) == ("", True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind: Pod\n", "is no config that can be imported"),
        ("a: [\n", "error[TPU0"),
        ("a: 1\na: 2\n", "error[TPU0"),
        ("kind: JobSet\nspec: {replicatedJobs: []}\n", "no valid config of gke"),
    ],
)
def test_another_file_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    """A file that cannot be read, or that is no config, has a message and no output."""
    path = tmp_path / "file.yaml"
    path.write_text(content)
    assert run(["import", str(path)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert "tpucfg init" not in output.err


def test_a_missing_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A path without a file is named."""
    assert run(["import", str(tmp_path / "none.yaml")]) == 1
    error = capsys.readouterr().err
    assert "none.yaml cannot be read" in error
    assert "help: give the path of a file that exists" in error
