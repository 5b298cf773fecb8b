"""Sentences about the files that `pulumi up` reads: project and stack files, config, links, and the program."""

import json
from pathlib import Path
from typing import Any

import pytest

from tpucfg.changes.statements import LocatedStatement, Risk
from tpucfg.git.program_files import FileVersion
from tpucfg.infra.pulumi_files import PulumiFiles, read_pulumi_files
from tpucfg.infra.stack_program import StackProgram
from tpucfg.review.changes.program.stack_changes import StackSetup, stack_statements

PROGRAM = StackProgram(Path("stacks"), "mnist", is_own=True, has_project=True, shown="stacks/__main__.py")
Files = dict[str, tuple[str, str]]
"""Kind and id by path."""


def setup(pulumi: PulumiFiles = PulumiFiles(), files: Files | None = None) -> StackSetup:  # noqa: B008 - it is immutable
    """Return a revision with settings and files."""
    versions = (FileVersion(path, kind, id_, "/x" * (kind == "link")) for path, (kind, id_) in (files or {}).items())  # type: ignore[arg-type] # kinds are texts
    return StackSetup(PROGRAM, {}, pulumi, tuple(versions))


def settings(folder: Path, project: dict[str, Any], stack: dict[str, Any]) -> StackSetup:
    """Return a revision with a project file and the file of the stack prod."""
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text(json.dumps({"name": "mnist", **project}))
    (folder / "Pulumi.prod.yaml").write_text(json.dumps(stack))
    return setup(read_pulumi_files(folder, ("prod",)))


def lines(before: StackSetup, after: StackSetup) -> list[str]:
    """Return the sentences with their risk."""
    return [f"{located.statement.risk.name} {located.plain}" for located in stack_statements(before, after)]


def changed(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the sentences about a change of a project file."""
    return lines(settings(tmp_path / "a", old, {}), settings(tmp_path / "b", new, {}))


def restacked(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the sentences about a change of a stack file."""
    return lines(settings(tmp_path / "a", {}, old), settings(tmp_path / "b", {}, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"backend": {"url": "gs://a"}}, {"backend": {"url": "gs://b"}}, "`backend.url` of Pulumi.yaml is gs://b"),
        (
            {"main": "a"},
            {"main": "b"},
            "DESTRUCTIVE main of Pulumi.yaml is b instead of a: Pulumi runs another program",
        ),
        ({"runtime": "python"}, {"runtime": {"name": "python"}}, ""),
        ({"runtime": "python"}, {"runtime": {"name": "go", "options": {"binary": "./evil"}}}, "runtime.options.binary"),
        ({}, {"plugins": {"providers": [{"name": "gcp", "path": "x"}]}}, "DESTRUCTIVE plugins.providers"),
        ({}, {"packages": {"x": "a/b"}}, "DESTRUCTIVE packages.x a/b added to Pulumi.yaml: Pulumi downloads and runs"),
        ({"options": {"refresh": "always"}}, {}, "CAUTION options.refresh always removed from Pulumi.yaml"),
        ({}, {"requiredPulumiVersion": ">=3"}, "CAUTION requiredPulumiVersion >=3 added"),
        ({}, {"unheard": {"of": 1}}, 'UNKNOWN unheard {"of": 1} added to Pulumi.yaml: this review does not know'),
        ({"description": "a", "author": "b"}, {"description": "c", "license": "d"}, ""),
        ({}, {"template": {"description": "x"}}, "NONE template added to Pulumi.yaml: only new projects"),
        ({}, {"config": {"a[0]": "x"}}, "DESTRUCTIVE config a[0] of Pulumi.yaml is x instead of none: it applies to"),
        ({}, {"config": {"gcp:project": "x"}}, "DESTRUCTIVE prod: config gcp:project is x instead of none"),
        ({}, {"config": {"mine": "x"}}, "NONE prod: config mnist:mine is x instead of none: the program reads it"),
        ({}, {"config": {"bucketMembers": ["group:a@b.c"]}}, ""),
    ],
)
def test_project_setting(tmp_path: Path, old: dict[str, Any], new: dict[str, Any], expected: str) -> None:
    """Each setting has its consequence and its risk; descriptions and what resources show have none."""
    sentences = changed(tmp_path, old, new)
    assert bool(sentences) == bool(expected)
    assert expected.replace("`", "") in "\n".join(sentences).replace("prod: ", "prod: ")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"environment": ["a/b"]}, 'DESTRUCTIVE prod: environment ["a/b"] added to Pulumi.<env>.yaml: Pulumi ESC'),
        ({"secretsprovider": "a"}, {"secretsprovider": "b"}, "is b instead of a: another key encrypts the secrets"),
        ({"encryptionsalt": "v1:a"}, {"encryptionsalt": "v1:b"}, "DESTRUCTIVE prod: encryptionsalt changed in"),
        ({}, {"encryptionsalt": "v1:a"}, "NONE prod: encryptionsalt added to"),
        (
            {"config": {"a": {"secure": "x"}}},
            {"config": {"a": {"secure": "y"}}},
            "encrypted value of config mnist:a changed",
        ),
        ({"config": {"a": {"secure": "x"}}}, {"config": {"a": "y"}}, "replaced by one that is not encrypted"),
        ({"config": {"a": {"secure": "x"}}}, {"config": {}}, "encrypted value of config mnist:a removed"),
        ({"config": {"a": "b"}}, {"config": {"a": {"secure": "x"}}}, "encrypted value of config mnist:a added"),
        ({}, {"config": {"pulumi:tags": {"a": "b"}}}, 'CAUTION prod: config pulumi:tags is {"a": "b"} instead of none'),
        ({}, {"config": {"pulumi:autonaming": {}}}, "DESTRUCTIVE prod: config pulumi:autonaming"),
        ({}, {"config": {"pulumi:new": 1}}, "UNKNOWN prod: config pulumi:new is 1 instead of none"),
        (
            {},
            {"config": {"gcp:accessToken": "ya29.abcdefghijklmn"}},
            "config gcp:accessToken is [secret] instead of none",
        ),
        ({}, {"gcp:zone": "a"}, "UNKNOWN prod: gcp:zone a added to"),
    ],
)
def test_stack_setting(tmp_path: Path, old: dict[str, Any], new: dict[str, Any], expected: str) -> None:
    """Each key of a stack file has its consequence and its risk; no encrypted value is printed."""
    sentences = "\n".join(restacked(tmp_path, old, new))
    assert expected.replace("<env>", "prod") in sentences
    assert '"secure"' not in sentences


def test_long_values_differ_where_they_are_cut(tmp_path: Path) -> None:
    """Two values that differ after thousands of characters are shown from their first difference on."""
    old, new = ({"config": {"gcp:x": ["a"] * 1000 + [end]}} for end in ("b", "c"))
    (sentence,) = restacked(tmp_path, old, new)
    assert '"c"] instead of …' in sentence
    assert len(sentence) < 500


def test_thousands_of_settings_are_summed_up(tmp_path: Path) -> None:
    """A file with thousands of new keys fills no comment, and those with the highest risk are named."""
    new = {**{f"x{i}": i for i in range(5000)}, "environment": ["a"]}
    sentences = restacked(tmp_path, {}, new)
    assert len(sentences) < 20
    assert sentences[0].startswith("DESTRUCTIVE prod: environment")
    assert sentences[-1].startswith("UNKNOWN prod: 4,989 more settings changed: ")


def test_unreadable_project_file_is_reported_while_it_changes(tmp_path: Path) -> None:
    """A file that only other readers of YAML accept is reported when it changes in any way."""
    folders = [tmp_path / name for name in "abc"]
    for folder, text in zip(folders, ("name: a", "name: a\n<<: {main: b}", "name: a\n<<: {main: c}"), strict=True):
        folder.mkdir()
        (folder / "Pulumi.yaml").write_text(text)
    readable, first, second = (setup(read_pulumi_files(folder, ())) for folder in folders)

    assert "cannot be read by this review: merge keys" in lines(readable, first)[0]
    assert "cannot be read by this review: merge keys" in lines(first, second)[0]
    assert lines(second, second) == []


def test_new_project_reports_only_unusual_settings(tmp_path: Path) -> None:
    """A new project has a runtime and a program; plugins are not usual."""
    new = settings(tmp_path / "b", {"main": "stacks", "runtime": "python", "plugins": {"providers": []}}, {})
    assert [line.partition(" added")[0] for line in lines(setup(), new)] == ["DESTRUCTIVE plugins.providers []"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"stacks/a.py": ("file", "1")}, "UNKNOWN stack program changed in stacks/a.py"),
        ({"stacks/a.py": ("file", "1")}, {}, "UNKNOWN stack program changed in stacks/a.py"),
        ({"stacks/a.py": ("file", "1")}, {"stacks/a.py": ("file", "1")}, ""),
        ({}, {"stacks/a.pyc": ("file", "1")}, "DESTRUCTIVE compiled code in the stack program changed: stacks/a.pyc"),
        ({}, {"stacks/Pulumi.yaml": ("file", "1")}, "DESTRUCTIVE another project file changed: stacks/Pulumi.yaml"),
        ({}, {"Pulumi.yml": ("file", "1")}, ""),
        ({}, {"uv.lock": ("file", "1")}, "UNKNOWN uv.lock changed: Pulumi may run the program with other packages"),
        ({}, {".gitattributes": ("file", "1")}, "UNKNOWN .gitattributes changed: git may check out other contents"),
        ({}, {"a": ("link", "1")}, "DESTRUCTIVE a is a symbolic link to /x: Pulumi reads what it leads to"),
        ({"a": ("link", "1")}, {"a": ("link", "1")}, ""),
        ({"a": ("link", "1")}, {"a": ("link", "2")}, "DESTRUCTIVE a is a symbolic link to /x"),
        ({"a": ("link", "")}, {"a": ("link", "")}, "UNKNOWN a is a symbolic link to /x"),
        ({"a": ("link", "1")}, {"a": ("file", "1")}, "UNKNOWN a replaced by a file: in the base it is a symbolic link"),
        ({"a": ("submodule", "1")}, {}, "UNKNOWN a removed: in the base it is a submodule"),
        ({}, {"a": ("submodule", "1")}, "DESTRUCTIVE a is a submodule: Pulumi reads its files"),
        ({"a": ("file", "1")}, {"a": ("large", "2")}, "DESTRUCTIVE a is too large: Pulumi reads it"),
        ({}, {"a": ("excess", "2")}, "DESTRUCTIVE a is one of more files than this review reads"),
    ],
)
def test_file(old: Files, new: Files, expected: str) -> None:
    """A file that a review does not read is a risk when it changes; other files have the risk of their role."""
    sentences = lines(setup(files=old), setup(files=new))
    assert len(sentences) == bool(expected)
    assert expected in "".join(sentences)


def test_thousands_of_links_are_summed_up() -> None:
    """The first links are named one by one, and all others in one sentence."""
    sentences = lines(setup(), setup(files={f"l{index:04}": ("link", "1") for index in range(3000)}))
    assert len(sentences) == 6
    assert sentences[-1].startswith(
        "DESTRUCTIVE 2,995 more files are symbolic links, which this review does not read: "
    )


@pytest.mark.parametrize(
    ("toolchain", "name", "is_read"),
    [("pip", "uv.lock", False), ("pip", "requirements.txt", True), ("uv", "poetry.lock", False), ("", "uv.lock", True)],
)
def test_packages_of_the_toolchain(tmp_path: Path, toolchain: str, name: str, is_read: bool) -> None:
    """Only the files that the project's toolchain reads choose the program's packages."""
    runtime = {"name": "python", "options": {"toolchain": toolchain} if toolchain else {}}
    before = settings(tmp_path / "a", {"runtime": runtime}, {})
    after = before._replace(files=(FileVersion(name, "file", "1"),))
    assert [located.statement.risk for located in stack_statements(before, after)] == [Risk.UNKNOWN] * is_read


def test_files_of_a_plugin(tmp_path: Path) -> None:
    """A change of a plugin in the repository is more than a change of the program."""
    before = settings(tmp_path / "a", {"plugins": {"providers": [{"name": "gcp", "path": "./bin"}]}}, {})
    after = before._replace(files=(FileVersion("bin/gcp", "file", "1"), FileVersion("binary", "file", "1")))
    located: list[LocatedStatement] = [*stack_statements(before, after)]
    assert [item.statement.risk for item in located] == [Risk.DESTRUCTIVE, Risk.UNKNOWN]
    assert "besides the program changed: bin/gcp" in located[0].plain


def test_renamed_project_does_not_repeat_its_config(tmp_path: Path) -> None:
    """A renamed project has one sentence: its config has another namespace, and configures no provider."""
    before = settings(tmp_path / "a", {"config": {"mine": "x"}}, {"config": {"mnist:spec": "tpucfg.yaml"}})
    after = settings(
        tmp_path / "b", {"name": "digits", "config": {"mine": "x"}}, {"config": {"digits:spec": "tpucfg.yaml"}}
    )
    assert {line.partition(" ")[0] for line in lines(before, after)} == {"NONE"}
