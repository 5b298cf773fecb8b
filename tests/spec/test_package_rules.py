"""A local package must exist beside the spec, with a build file where gcloud looks for it."""

from pathlib import Path

import pytest

from tpucfg.findings import Finding
from tpucfg.spec.package_rules import package_findings
from tpucfg.spec.parse import project_from_document
from tpucfg.yamldoc.reader import read_text

SPEC = """\
version: 1
name: mnist
target: {target}
sizes: [v2-8]
environments:
  dev: {{project: my-project-dev, region: us-central1}}
trainer: {{package: "{package}", module: trainer.task, runtime: "2.2", python: "3.7"}}
training: {{tuned_on: v2-8, batch_size: 1024, epochs: 1}}
"""


def findings_for(
    folder: Path, package: str = "trainer", target: str = "ai-platform"
) -> list[Finding]:
    """Return the findings about the package of a spec in a folder."""
    project, spec_findings = project_from_document(
        read_text(SPEC.format(package=package, target=target), "tpucfg.yaml")
    )
    assert project is not None, spec_findings
    return list(package_findings(project, folder))


@pytest.mark.parametrize("build_file", ["setup.py", "pyproject.toml"])
def test_a_package_beside_its_build_file_is_valid(tmp_path: Path, build_file: str) -> None:
    """The build file belongs in the folder above the package, where gcloud builds it."""
    (tmp_path / "trainer").mkdir()
    (tmp_path / build_file).touch()
    assert findings_for(tmp_path) == []


def test_a_missing_package_is_a_warning(tmp_path: Path) -> None:
    """The warning is at the package's name in the spec and names the folder."""
    (finding,) = findings_for(tmp_path)
    assert (finding.id, finding.level, finding.location.line) == ("TPU053", "warning", 7)
    assert (
        finding.message == "trainer.package is trainer, and there is no such folder beside the spec"
    )


def test_a_package_without_a_build_file_is_a_warning(tmp_path: Path) -> None:
    """Without a build file, gcloud generates a setup.py that requires nothing, and the warning mentions it."""
    (tmp_path / "trainer").mkdir()
    (finding,) = findings_for(tmp_path)
    assert finding.message == (
        "gcloud finds no setup.py or pyproject.toml beside trainer, and builds it without requirements"
    )
    assert finding.help == "write a setup.py beside trainer"


def test_a_build_file_inside_the_package_is_a_warning(tmp_path: Path) -> None:
    """The help moves a setup.py inside the package to the folder that gcloud looks in."""
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "setup.py").touch()
    (finding,) = findings_for(tmp_path)
    assert finding.message.startswith("gcloud finds no setup.py or pyproject.toml beside trainer")
    assert finding.help == "move setup.py up, beside trainer"


def test_a_package_path_is_relative_to_the_spec(tmp_path: Path) -> None:
    """The package's path is relative to the spec's folder, and may contain `..`."""
    (tmp_path / "code" / "trainer").mkdir(parents=True)
    (tmp_path / "code" / "setup.py").touch()
    (tmp_path / "specs").mkdir()
    assert findings_for(tmp_path / "specs", "../code/trainer") == []


@pytest.mark.parametrize("package", ["gs://my-bucket/trainer.tar.gz", "${bucket}/trainer.tar.gz"])
def test_a_package_in_cloud_storage_is_not_checked(tmp_path: Path, package: str) -> None:
    """A package in Cloud Storage cannot be checked on the local disk."""
    assert findings_for(tmp_path, package) == []


def test_a_package_of_another_target_is_not_checked(tmp_path: Path) -> None:
    """The other targets refuse a local package with their own finding."""
    assert findings_for(tmp_path, target="cloud-tpu") == []


def test_a_name_that_no_folder_can_have_is_a_missing_package(tmp_path: Path) -> None:
    """A name longer than the file system allows is a warning, not a crash."""
    (finding,) = findings_for(tmp_path, "x" * 2000)
    assert "there is no such folder beside the spec" in finding.message
