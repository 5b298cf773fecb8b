"""Stack files: closed, in their project's namespace, and each of an environment."""

import json
from pathlib import Path

import pytest
import specs

from tpucfg.infra import stack_files
from tpucfg.package_data import data_folder
from tpucfg.spec.parse import load_project
from tpucfg.yamldoc.reader import read_text

ROOT = Path(__file__).resolve().parents[2]


def ids(text: str, namespace: str = "tpucfg") -> list[str]:
    """The ids of the findings about a stack file."""
    return [finding.id for finding in stack_files.document_findings(read_text(text, "Pulumi.dev.yaml"), namespace)]


@pytest.mark.parametrize("path", sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda path: path.name)
def test_own_stack_files_are_clean(path: Path) -> None:
    """The three stack files of this repository have no finding."""
    assert not stack_files.file_findings(path, "tpucfg", ROOT)[0]


@pytest.mark.parametrize(
    "text",
    [
        "config: {}",
        "config:",
        "",
        "# nothing yet\n\n  # but a comment\n",
        "config:\n  tpucfg:spec: tpucfg.yaml",
        "config:\n  spec: tpucfg.yaml",
        "config:\n  pulumi:tags: {team: vision}",
        'config:\n  tpucfg:projectNumber: "123456789012"',
        "config:\n  tpucfg:bucketMembers: ['group:team@example.com', 'serviceAccount:a@b.iam.gserviceaccount.com']",
        "encryptionsalt: v1:abc\nsecretsprovider: gcpkms://key\nencryptedkey: abc\nenvironment: [shared]",
    ],
)
def test_what_pulumi_and_the_program_read_is_taken(text: str) -> None:
    """Every key of the program and of Pulumi itself is taken, and so is a file without config."""
    assert not ids(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("config:\n  tpucfg:bucketMember: []", "TPU080"),
        ("config:\n  gcp:project: acme", "TPU080"),
        ("config:\n  other:spec: tpucfg.yaml", "TPU080"),
        ("confg: {}", "TPU080"),
        ("config:\n  tpucfg:projectNumber: 123456789012", "TPU081"),
        ("config:\n  tpucfg:projectNumber: twelve", "TPU081"),
        ("config:\n  tpucfg:spec: {secure: v1:abc}", "TPU081"),
        ("config:\n  tpucfg:bucketMembers: [allUsers]", "TPU081"),
        ("config:\n  tpucfg:bucketMembers: group:team@example.com", "TPU081"),
        ("config:\n  tpucfg:tpuServiceAccount: somebody", "TPU081"),
        ("- config", "TPU081"),
        ("config: {}\nconfig: {}", "TPU003"),
    ],
)
def test_everything_else_is_one_error(text: str, expected: str) -> None:
    """A misspelt key, another program's key, and a value of the wrong form are one error each."""
    assert ids(text) == [expected]


def test_namespace_is_the_pulumi_projects_name() -> None:
    """In a Pulumi project of another name its keys have that name, and ours are nobody's."""
    assert not ids("config:\n  mnist:projectNumber: '1'", "mnist")
    assert ids("config:\n  tpucfg:projectNumber: '1'", "mnist") == ["TPU080"]


def test_misspelt_key_names_the_one_that_was_meant() -> None:
    """The help of an unknown key is the known one that is nearest."""
    document = read_text("config:\n  tpucfg:bucket_members: []", "Pulumi.dev.yaml")

    [finding] = stack_files.document_findings(document, "tpucfg")

    assert finding.help == "did you mean tpucfg:bucketMembers?"
    assert (finding.location.line, finding.location.column) == (2, 3)


def test_schema_code_and_project_file_have_the_same_keys() -> None:
    """What the schema admits, what the code knows and what Pulumi.yaml declares with type and text are one list."""
    patterns = json.loads((data_folder("schema") / "stack.schema.json").read_text())["properties"]["config"]
    admitted = [pattern.rpartition("?")[2].rstrip("$") for pattern in patterns["patternProperties"]]
    declared = read_text((ROOT / "Pulumi.yaml").read_text(), "Pulumi.yaml").data["config"]

    assert tuple(admitted[:-1]) == stack_files.KEYS == tuple(declared)
    assert all(entry["type"] and entry["description"] for entry in declared.values())


def test_stack_without_an_environment_or_a_spec_is_found(tmp_path: Path) -> None:
    """Beside a spec, a stack file of no environment and one whose spec is missing are errors; another spec's is not."""
    spec = specs.write(tmp_path, specs.spec())
    (tmp_path / "Pulumi.yaml").write_text("name: tpucfg\nmain: stacks\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "other.yaml").write_text("version: 1\n")
    texts = {"dev": "", "prod": "", "gone": "tpucfg:spec: gone.yaml", "else": "tpucfg:spec: other.yaml"}
    for name, config in texts.items():
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(f"config:\n  {config}\n")

    found, sources = stack_files.stack_file_findings(spec, load_project(spec)[0])

    named = {(Path(finding.location.file).name, finding.id) for finding in found}
    assert named == {("Pulumi.prod.yaml", "TPU082"), ("Pulumi.gone.yaml", "TPU083")}
    assert len(sources) == 4


def test_spec_without_a_pulumi_project_has_no_stacks(tmp_path: Path) -> None:
    """A spec beside no Pulumi.yaml, or beside one that Pulumi could not read, is checked alone."""
    spec = specs.write(tmp_path, specs.spec())
    assert stack_files.stack_file_findings(spec, None) == ([], {})
    (tmp_path / "Pulumi.yaml").write_text("- nothing\n")
    assert stack_files.stack_file_findings(spec, None) == ([], {})


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "\u202e"])
def test_the_name_of_a_stack_file_is_somebody_else_s(tmp_path: Path, name: str) -> None:
    """What a terminal would act on is shown as its escape, in the sentence and in the help."""
    (tmp_path / "Pulumi.yaml").write_text("name: tpucfg\nruntime: python\n")
    (tmp_path / f"Pulumi.{name}.yaml").write_text("config:\n  tpucfg:spec: tpucfg.yaml\n")
    spec = tmp_path / "tpucfg.yaml"
    spec.write_text((ROOT / "tpucfg.yaml").read_text())
    project, _ = load_project(spec)
    (found,) = stack_files.stack_file_findings(spec, project)[0]
    assert found.id == "TPU082"
    assert found.message.isprintable()
    assert found.help.isprintable()


@pytest.mark.parametrize("key", ["tpucfg:spec", "main", "stackConfigDir"])
def test_a_path_that_cannot_be_followed(tmp_path: Path, key: str) -> None:
    """A name that no file system takes is a file that is not there."""
    long = "x" * 300
    spec = tmp_path / "tpucfg.yaml"
    spec.write_text((ROOT / "tpucfg.yaml").read_text())
    own = {key: long} if key in ("main", "stackConfigDir") else {}
    (tmp_path / "Pulumi.yaml").write_text(json.dumps({"name": "tpucfg", "runtime": "python", **own}))
    (tmp_path / "Pulumi.dev.yaml").write_text(
        json.dumps({"config": {"tpucfg:spec": "tpucfg.yaml", **({} if own else {key: long})}})
    )
    found, _ = stack_files.stack_file_findings(spec, load_project(spec)[0])
    assert [finding.id for finding in found] == ([] if own else ["TPU083"])
