"""`tpucfg check --config` of several files and of folders."""

import json
from pathlib import Path

import pytest

from tpucfg.cli.app import run

VALID = """\
workerPoolSpecs:
- machineSpec: {machineType: cloud-tpu, acceleratorType: TPU_V3, acceleratorCount: 32}
  replicaCount: 1
  containerSpec: {imageUri: i}
"""
TARGET = ["--target", "vertex-ai"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with two valid and two broken configs, and files that are not searched."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "configs/b/config.yaml": VALID.replace("replicaCount", "replicas"),
        "configs/b/other.json": "{}",
        "configs/a.yml": VALID,
        "configs/c.yaml": VALID,
        "configs/notes.txt": "[",
        "configs/.hidden/x.yaml": "[",
        "configs/.hidden.yaml": "[",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "outside.yaml").write_text("[")
    (tmp_path / "configs" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (tmp_path / "configs" / "linked").symlink_to(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_every_config_below_a_folder_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """The findings of all files are printed in one run, in the order of the files; links and hidden files are not."""
    assert run(["check", "--config", "configs", *TARGET]) == 1
    output = capsys.readouterr().out
    headlines = [line.partition(": error")[0] for line in output.splitlines() if ": error" in line]
    assert headlines == ["configs/b/config.yaml:3:3", "configs/b/other.json:1:1"]
    assert output.splitlines()[-1] == "configs, 4 configs: 2 errors"


def test_valid_configs_have_no_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is given twice, by itself and by its folder, is checked once."""
    assert run(["check", "--config", "configs/a.yml", "--config", "configs/c.yaml", *TARGET]) == 0
    assert capsys.readouterr().out == "configs/a.yml, configs/c.yaml: no findings\n"
    (folder / "configs" / "b" / "config.yaml").write_text(VALID)
    (folder / "configs" / "b" / "other.json").unlink()
    assert (
        run(["check", "--config", "configs/b", "--config", "./configs/b/config.yaml", *TARGET]) == 0
    )
    assert capsys.readouterr().out == "configs/b, configs/b/config.yaml, 1 config: no findings\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("format_", ["json", "sarif", "github"])
def test_formats_contain_every_file(capsys: pytest.CaptureFixture[str], format_: str) -> None:
    """Each format names each broken file."""
    assert run(["check", "--config", "configs", *TARGET, "--format", format_]) == 1
    output = capsys.readouterr().out
    if format_ == "json":
        assert [entry["file"] for entry in json.loads(output)] == [
            "configs/b/config.yaml",
            "configs/b/other.json",
        ]
    assert "configs/b/config.yaml" in output
    assert "configs/b/other.json" in output


def test_folder_without_configs_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong path does not pass as a folder of valid configs."""
    (folder / "empty").mkdir()
    assert run(["check", "--config", "empty", "--config", "configs/a.yml", *TARGET]) == 1
    output = capsys.readouterr().out
    assert (
        "empty:1:1: error[TPU001]: empty has no file to check: none ends with .yaml, .yml, .json"
        in output
    )
    assert output.splitlines()[-1] == "empty, configs/a.yml, 1 config: 1 error"


@pytest.mark.usefixtures("folder")
def test_missing_path_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The help of a path that does not exist names the option."""
    assert run(["check", "--config", "missing", *TARGET]) == 1
    assert "help: give the path of a file that exists" in capsys.readouterr().out


GROUP = (
    'kind: "compute#resourcePolicy"\nname: a\n---\nkind: "compute#instanceGroupManager"\nname: a\n'
)
JOBSET = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
OF_KINDS = [
    (GROUP, "compute-engine"),
    ('{"instance": {"kind": "compute#instance"}}', "compute-engine"),
    (JOBSET, "gke"),
]


@pytest.mark.parametrize(("text", "target"), OF_KINDS)
def test_kinds_name_the_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, target: str
) -> None:
    """Without --target, and with another one, the help is the target that the kind of an object shows."""
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert run(["check", "--config", str(file)]) == 2
    assert f"help: add --target {target}\n" in capsys.readouterr().err
    for other in (
        "cloud-tpu",
        "vertex-ai",
        "ai-platform",
        "gke" if target == "compute-engine" else "compute-engine",
    ):
        assert run(["check", "--config", str(file), "--target", other]) == 1
        output = capsys.readouterr().out
        assert f"help: replace --target {other} by --target {target}\n" in output
        assert output.endswith(": 1 error\n")
    run(["check", "--config", str(file), "--target", target])
    assert "--target" not in capsys.readouterr().out


def test_without_a_kind_no_target_is_known(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A config of the other targets does not name its service, and a folder may be empty."""
    (folder / "empty").mkdir()
    for path in ("configs/a.yml", "configs", "empty", "missing"):
        assert run(["check", "--config", path]) == 2
        assert "a config.yaml does not name its service" in capsys.readouterr().err


def test_help_for_a_missing_config_asks_for_its_path(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty config is rendered again; one in another encoding keeps the help about that."""
    (folder / "empty.yaml").write_text("")
    (folder / "utf16.yaml").write_bytes(VALID.encode("utf-16"))
    assert run(["check", "--config", "empty.yaml", "--config", "utf16.yaml", *TARGET]) == 1
    output = capsys.readouterr().out
    assert "help: write it again" in output
    assert "UTF-8" in output.partition("utf16.yaml:1:1")[2].partition("help: ")[2]


SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: metrics, labels: }\nspec: {ports: [{port: 80}]}\n"
BY_HAND = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: recipe
  labels:
  annotations:
spec:
  failurePolicy:
  replicatedJobs:
  - name: slice-job
    replicas: 1
    template:
      spec:
        parallelism: 16
        completions: 16
        backoffLimit: 0
        template:
          metadata:
            labels:
          spec:
            restartPolicy: Never
            nodeSelector:
              cloud.google.com/gke-tpu-accelerator: tpu7x
              cloud.google.com/gke-tpu-topology: 4x4x4
            serviceAccountName:
            containers:
            - name: jax-tpu
              image: us-docker.pkg.dev/my-project/train/maxtext:1.0
              env:
              resources:
                limits: {google.com/tpu: 4}
"""
"""A JobSet with empty fields, as xpk and recipes write them."""
BESIDE = [
    "{jobset}",
    "{service}---\n{jobset}",
    "{jobset}---\n{service}",
    "{service}---\n{jobset}---\n{service}",
]


def check_jobset(folder: Path, text: str) -> int:
    """Return the exit status of the check of a text as a config of gke."""
    (folder / "jobset.yaml").write_text(text)
    return run(["check", "--config", str(folder / "jobset.yaml"), "--target", "gke"])


@pytest.mark.parametrize("beside", BESIDE)
def test_a_jobset_is_checked_as_the_server_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], beside: str
) -> None:
    """Null fields are absent, other objects are left alone on either side, and a wrong topology is refused."""
    text = beside.format(jobset=BY_HAND, service=SERVICE)
    assert check_jobset(tmp_path, text) == 0, capsys.readouterr().out
    capsys.readouterr()
    wrong = text.replace("4x4x4", "4x4x5")
    assert check_jobset(tmp_path, wrong) == 1
    line = wrong[: wrong.index("4x4x5")].count("\n") + 1
    assert f"jobset.yaml:{line}:" in capsys.readouterr().out


def test_every_jobset_of_a_file_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake in one of two is found, whichever it is."""
    wrong = BY_HAND.replace("4x4x4", "4x4x5")
    assert check_jobset(tmp_path, f"{BY_HAND}---\n{BY_HAND}") == 0
    for text in (f"{BY_HAND}---\n{wrong}", f"{wrong}---\n{BY_HAND}"):
        assert check_jobset(tmp_path, text) == 1
    assert capsys.readouterr().out.endswith(": 1 error\n")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  - name: slice-job\n", "  - name:\n", "needs the field name"),
        (
            "            containers:\n",
            "            containers:\n            -\n",
            "containers[0] is empty",
        ),
        ("kind: JobSet", "kind: Jobset", 'kind is "Jobset"'),
        ("jobset.x-k8s.io/v1alpha2", "jobset.x-k8s.io/v1", "apiVersion"),
    ],
)
def test_a_null_is_no_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, expected: str
) -> None:
    """A required field that is null is missing, a null entry of a list is a mistake, and so is a kind nearby."""
    assert old in BY_HAND
    assert check_jobset(tmp_path, f"{BY_HAND.replace(old, new)}---\n{SERVICE}") == 1
    assert expected in capsys.readouterr().out


def test_only_objects_of_other_apis_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An object without an API, and one of an API that a config uses, is a finding."""
    for other in (
        "kind: Service\n",
        "apiVersion: secret-sync.gke.io/v1\nkind: SecretSink\n",
        "- 1\n",
    ):
        assert check_jobset(tmp_path, f"{other}---\n{BY_HAND}") == 1
        assert "is not checked as part of a config" in capsys.readouterr().out
