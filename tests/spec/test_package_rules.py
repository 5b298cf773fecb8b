"""A local package beside the spec: is it there, and will gcloud build it with what it requires."""

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


def found(folder: Path, package: str = "trainer", target: str = "ai-platform") -> list[Finding]:
    """Return the findings about a package for a spec in that folder."""
    project, wrong = project_from_document(read_text(SPEC.format(package=package, target=target), "tpucfg.yaml"))
    assert project is not None, wrong
    return list(package_findings(project, folder))


@pytest.mark.parametrize("build_file", ["setup.py", "pyproject.toml"])
def test_a_package_beside_its_build_file_is_right(tmp_path: Path, build_file: str) -> None:
    """The folder above the package is where gcloud builds it, so the build file belongs there."""
    (tmp_path / "trainer").mkdir()
    (tmp_path / build_file).touch()
    assert found(tmp_path) == []


def test_a_package_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    """The warning is at the package's name in the spec and names the folder."""
    (finding,) = found(tmp_path)
    assert (finding.id, finding.level, finding.location.line) == ("TPU053", "warning", 7)
    assert finding.message == "trainer.package is trainer, and there is no such folder beside the spec"


def test_a_package_without_a_build_file_is_a_warning(tmp_path: Path) -> None:
    """Without one gcloud writes a setup.py of its own, which requires nothing: the warning says so."""
    (tmp_path / "trainer").mkdir()
    (finding,) = found(tmp_path)
    assert finding.message == (
        "there is neither setup.py nor pyproject.toml; gcloud looks in the folder above trainer, "
        "and builds it without its requirements"
    )
    assert finding.help == "write a setup.py beside trainer"


def test_a_build_file_in_the_package_is_not_where_gcloud_looks(tmp_path: Path) -> None:
    """A setup.py inside the package is found, and the help says where to move it."""
    (tmp_path / "trainer").mkdir()
    (tmp_path / "trainer" / "setup.py").touch()
    (finding,) = found(tmp_path)
    assert finding.message.startswith("setup.py is in trainer itself; gcloud looks in the folder above trainer")
    assert finding.help == "move setup.py up, beside trainer"


def test_a_package_elsewhere_is_looked_for_there(tmp_path: Path) -> None:
    """The package's path is relative to the spec's folder, and `..` in it leads up."""
    (tmp_path / "code" / "trainer").mkdir(parents=True)
    (tmp_path / "code" / "setup.py").touch()
    (tmp_path / "specs").mkdir()
    assert found(tmp_path / "specs", "../code/trainer") == []


@pytest.mark.parametrize("package", ["gs://my-bucket/trainer.tar.gz", "${bucket}/trainer.tar.gz"])
def test_a_package_in_cloud_storage_is_not_looked_for(tmp_path: Path, package: str) -> None:
    """What is not on this disk cannot be missing on it."""
    assert found(tmp_path, package) == []


def test_a_package_of_another_target_is_not_looked_for(tmp_path: Path) -> None:
    """The other targets refuse a local package themselves: one mistake is one finding."""
    assert found(tmp_path, target="cloud-tpu") == []


def test_a_name_that_no_folder_can_have_is_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A name longer than the file system takes is a warning and not a crash."""
    (finding,) = found(tmp_path, "x" * 2000)
    assert "there is no such folder beside the spec" in finding.message
