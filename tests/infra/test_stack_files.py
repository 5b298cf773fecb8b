"""Stack files: a closed schema, the project's namespace, and one environment per file."""

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
    """Return the ids of the findings about a stack file."""
    return [
        finding.id
        for finding in stack_files.document_findings(read_text(text, "Pulumi.dev.yaml"), namespace)
    ]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "stacks").glob("Pulumi.*.yaml")), ids=lambda path: path.name
)
def test_stack_files_of_this_repository_are_valid(path: Path) -> None:
    """The stack files of this repository have no finding."""
    assert not stack_files.file_findings(path, "tpucfg", ROOT)[0]


@pytest.mark.parametrize(
    "text",
    [
        "config: {}",
        "config:",
        "",
        "# empty\n\n  # except for comments\n",
        "config:\n  tpucfg:spec: tpucfg.yaml",
        "config:\n  spec: tpucfg.yaml",
        "config:\n  pulumi:tags: {team: vision}",
        'config:\n  tpucfg:projectNumber: "123456789012"',
        "config:\n  tpucfg:bucketMembers: ['group:team@example.com', 'serviceAccount:a@b.iam.gserviceaccount.com']",
        "encryptionsalt: v1:abc\nsecretsprovider: gcpkms://key\nencryptedkey: abc\nenvironment: [shared]",
    ],
)
def test_known_keys_are_valid(text: str) -> None:
    """Every key of the stack program and of Pulumi is valid, and so is a file without config."""
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
def test_unknown_key_or_invalid_value_is_one_error(text: str, expected: str) -> None:
    """A misspelt key, a key of another namespace, and a malformed value are one error each."""
    assert ids(text) == [expected]


def test_namespace_is_the_pulumi_projects_name() -> None:
    """In a Pulumi project of another name, keys have that name, and keys with the name tpucfg are unknown."""
    assert not ids("config:\n  mnist:projectNumber: '1'", "mnist")
    assert ids("config:\n  tpucfg:projectNumber: '1'", "mnist") == ["TPU080"]


def test_misspelt_key_suggests_the_nearest_key() -> None:
    """The help for an unknown key suggests the nearest known key."""
    document = read_text("config:\n  tpucfg:bucket_members: []", "Pulumi.dev.yaml")

    [finding] = stack_files.document_findings(document, "tpucfg")

    assert finding.help == "did you mean tpucfg:bucketMembers?"
    assert (finding.location.line, finding.location.column) == (2, 3)


def test_schema_code_and_pulumi_yaml_have_equal_keys() -> None:
    """The schema, the code and Pulumi.yaml list equal keys, the last with type and description."""
    patterns = json.loads((data_folder("schema") / "stack.schema.json").read_text())["properties"][
        "config"
    ]
    in_schema = [
        pattern.rpartition("?")[2].rstrip("$") for pattern in patterns["patternProperties"]
    ]
    declared = read_text((ROOT / "Pulumi.yaml").read_text(), "Pulumi.yaml").data["config"]

    assert tuple(in_schema[:-1]) == stack_files.KEYS == tuple(declared)
    assert all(entry["type"] and entry["description"] for entry in declared.values())


def test_stack_needs_an_environment_and_a_spec(tmp_path: Path) -> None:
    """A stack file without an environment, or with a missing spec, is an error; one of another spec is not."""
    spec = specs.write(tmp_path, specs.spec())
    (tmp_path / "Pulumi.yaml").write_text("name: tpucfg\nmain: stacks\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "other.yaml").write_text("version: 1\n")
    configs = {
        "dev": "",
        "prod": "",
        "missing": "tpucfg:spec: missing.yaml",
        "other": "tpucfg:spec: other.yaml",
    }
    for name, config in configs.items():
        (tmp_path / "stacks" / f"Pulumi.{name}.yaml").write_text(f"config:\n  {config}\n")

    findings, sources = stack_files.stack_file_findings(spec, load_project(spec)[0])

    ids_by_file = {(Path(finding.location.file).name, finding.id) for finding in findings}
    assert ids_by_file == {("Pulumi.prod.yaml", "TPU082"), ("Pulumi.missing.yaml", "TPU083")}
    assert len(sources) == 4


def test_stack_file_that_is_not_read_is_a_warning(tmp_path: Path) -> None:
    """A file with another ending than the project file, and a link, are warnings; a link is still checked."""
    spec = specs.write(tmp_path, specs.spec())
    (tmp_path / "Pulumi.yaml").write_text("name: tpucfg\n")
    (tmp_path / "Pulumi.dev.json").write_text("{}")
    (tmp_path / "shared.yaml").write_text("config: {tpucfg:typo: 1}\n")
    (tmp_path / "Pulumi.dev.yaml").symlink_to("shared.yaml")

    findings, _ = stack_files.stack_file_findings(spec, load_project(spec)[0])

    assert [(Path(finding.location.file).name, finding.id) for finding in findings] == [
        ("Pulumi.dev.json", "TPU085"),
        ("Pulumi.dev.yaml", "TPU085"),
        ("Pulumi.dev.yaml", "TPU080"),
    ]


def test_json_project_has_json_stack_files(tmp_path: Path) -> None:
    """Beside Pulumi.json, the file of a stack is JSON, and one in YAML is not read."""
    spec = specs.write(tmp_path, specs.spec())
    (tmp_path / "Pulumi.json").write_text('{"name": "tpucfg"}')
    (tmp_path / "Pulumi.dev.json").write_text('{"config": {"tpucfg:typo": 1}}')
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {tpucfg:typo: 1}\n")

    findings, _ = stack_files.stack_file_findings(spec, load_project(spec)[0])

    assert [(Path(finding.location.file).name, finding.id) for finding in findings] == [
        ("Pulumi.dev.json", "TPU080"),
        ("Pulumi.dev.yaml", "TPU085"),
    ]


def test_too_large_stack_file_is_an_error(tmp_path: Path) -> None:
    """A stack file that no reader takes is an error, unlike an empty one."""
    (tmp_path / "Pulumi.dev.yaml").write_text("#" * (1 << 20) + "\n")
    findings, _ = stack_files.file_findings(tmp_path / "Pulumi.dev.yaml", "tpucfg", tmp_path)
    assert [finding.id for finding in findings] == ["TPU010"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"bucketMembers": {"default": ["allUsers"]}}, ["TPU081"]),
        ({"bucketMembers": ["allUsers"]}, ["TPU081"]),
        ({'["bucketMembers"]': ["allUsers"]}, ["TPU080"]),
        ({"tpucfg:config:bucketMembers": ["allUsers"]}, ["TPU080"]),
        ({"bucketMembers[0]": "group:a@b.c"}, ["TPU080"]),
        ({"bucketMembers": {"type": "array", "default": []}, "projectNumber": {"default": ""}}, []),
        ({"mine": {"default": "x"}, "gcp:project": {"value": "x"}}, []),
    ],
)
def test_values_of_the_project_file_are_checked(
    tmp_path: Path, config: dict[str, object], expected: list[str]
) -> None:
    """Values in the project file for all stacks have the rules of a stack file, except keys of other programs."""
    spec = specs.write(tmp_path, specs.spec())
    (tmp_path / "Pulumi.yaml").write_text(json.dumps({"name": "tpucfg", "config": config}))
    findings, _ = stack_files.stack_file_findings(spec, load_project(spec)[0])
    assert [finding.id for finding in findings] == expected


def test_spec_without_a_pulumi_project_has_no_stack_files(tmp_path: Path) -> None:
    """Without a Pulumi.yaml that Pulumi could read, no stack file is checked."""
    spec = specs.write(tmp_path, specs.spec())
    assert stack_files.stack_file_findings(spec, None) == ([], {})
    (tmp_path / "Pulumi.yaml").write_text("- nothing\n")
    assert stack_files.stack_file_findings(spec, None) == ([], {})


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "\u202e"])
def test_control_characters_in_a_stack_name_are_escaped(tmp_path: Path, name: str) -> None:
    """Message and help escape characters that would change the terminal's state."""
    (tmp_path / "Pulumi.yaml").write_text("name: tpucfg\nruntime: python\n")
    (tmp_path / f"Pulumi.{name}.yaml").write_text("config:\n  tpucfg:spec: tpucfg.yaml\n")
    spec = tmp_path / "tpucfg.yaml"
    spec.write_text((ROOT / "tpucfg.yaml").read_text())
    project, _ = load_project(spec)
    (finding,) = stack_files.stack_file_findings(spec, project)[0]
    assert finding.id == "TPU082"
    assert finding.message.isprintable()
    assert finding.help.isprintable()


@pytest.mark.parametrize("key", ["tpucfg:spec", "main", "stackConfigDir"])
def test_path_with_a_too_long_name_is_a_missing_file(tmp_path: Path, key: str) -> None:
    """A file name longer than any file system accepts is treated as a missing file."""
    long_name = "x" * 300
    spec = tmp_path / "tpucfg.yaml"
    spec.write_text((ROOT / "tpucfg.yaml").read_text())
    project_keys = {key: long_name} if key in ("main", "stackConfigDir") else {}
    (tmp_path / "Pulumi.yaml").write_text(
        json.dumps({"name": "tpucfg", "runtime": "python", **project_keys})
    )
    (tmp_path / "Pulumi.dev.yaml").write_text(
        json.dumps(
            {"config": {"tpucfg:spec": "tpucfg.yaml", **({} if project_keys else {key: long_name})}}
        )
    )
    findings, _ = stack_files.stack_file_findings(spec, load_project(spec)[0])
    assert [finding.id for finding in findings] == ([] if project_keys else ["TPU083"])
