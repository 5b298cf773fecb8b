"""Sentences about the files that `pulumi up` reads: project and stack files, config, links, and the program."""

import json
from pathlib import Path
from typing import Any

import pytest

from tpucfg.changes.programs import StackSetup, setup_statements
from tpucfg.changes.statements import LocatedStatement, Risk
from tpucfg.git.changed_files import FileVersion
from tpucfg.infra.stack_files import PulumiFiles, read_pulumi_files
from tpucfg.infra.stack_program import StackProgram

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
    return [f"{located.statement.risk.name} {located.plain}" for located in setup_statements(before, after)]


def changed(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the sentences about a change of a project file."""
    return lines(settings(tmp_path / "a", old, {}), settings(tmp_path / "b", new, {}))


def restacked(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the sentences about a change of a stack file."""
    return lines(settings(tmp_path / "a", {}, old), settings(tmp_path / "b", {}, new))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"backend": {"url": "gs://a"}}, {"backend": {"url": "gs://b"}}, "DESTRUCTIVE setting of Pulumi backend.url"),
        (
            {"main": "a"},
            {"main": "b"},
            "DESTRUCTIVE setting of Pulumi main changed from a to b: Pulumi runs other code",
        ),
        ({"runtime": "python"}, {"runtime": {"name": "python"}}, ""),
        (
            {"runtime": "python"},
            {"runtime": {"name": "go", "options": {"binary": "./evil"}}},
            "DESTRUCTIVE setting of Pulumi runtime.options.binary",
        ),
        ({}, {"plugins": {"providers": [{"name": "gcp", "path": "x"}]}}, "DESTRUCTIVE setting of Pulumi plugins"),
        ({}, {"packages": {"x": "a/b"}}, "DESTRUCTIVE setting of Pulumi packages.x"),
        ({"options": {"refresh": "always"}}, {}, "UNKNOWN setting of Pulumi options.refresh removed"),
        ({}, {"requiredPulumiVersion": ">=3"}, "UNKNOWN setting of Pulumi requiredPulumiVersion"),
        ({}, {"unheard": {"of": 1}}, "UNKNOWN setting of Pulumi unheard"),
        ({"description": "a", "author": "b"}, {"description": "c", "license": "d"}, ""),
        ({}, {"template": {"description": "x"}}, ""),
        ({}, {"config": {"a[0]": "x"}}, "DESTRUCTIVE prod: config a[0] is x"),
        ({}, {"config": {"gcp:project": "x"}}, "DESTRUCTIVE prod: config gcp:project added (x)"),
        ({}, {"config": {"mine": "x"}}, "NONE prod: config mine added (x): the program reads it"),
        ({}, {"config": {"bucketMembers": ["group:a@b.c"]}}, ""),
    ],
)
def test_project_setting(tmp_path: Path, old: dict[str, Any], new: dict[str, Any], expected: str) -> None:
    """Each setting has its consequence and its risk; descriptions and what resources show have none."""
    sentences = changed(tmp_path, old, new)
    assert bool(sentences) == bool(expected)
    assert expected in "\n".join(sentences)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"environment": ["a/b"]}, "DESTRUCTIVE prod: setting of the stack environment"),
        (
            {"secretsprovider": "a"},
            {"secretsprovider": "b"},
            "DESTRUCTIVE prod: setting of the stack secretsprovider changed from a to b",
        ),
        (
            {"encryptionsalt": "v1:a"},
            {"encryptionsalt": "v1:b"},
            "DESTRUCTIVE prod: setting of the stack encryptionsalt",
        ),
        ({}, {"encryptionsalt": "v1:a"}, "NONE prod: setting of the stack encryptionsalt added"),
        ({"config": {"a": {"secure": "x"}}}, {"config": {"a": {"secure": "y"}}}, "DESTRUCTIVE prod: encrypted value"),
        ({"config": {"a": {"secure": "x"}}}, {"config": {"a": "y"}}, "DESTRUCTIVE prod: encrypted value"),
        ({"config": {"a": {"secure": "x"}}}, {"config": {}}, "DESTRUCTIVE prod: encrypted value"),
        ({"config": {"a": "b"}}, {"config": {"a": {"secure": "x"}}}, "DESTRUCTIVE prod: encrypted value"),
        ({}, {"config": {"pulumi:tags": {"a": "b"}}}, "UNKNOWN prod: config pulumi:tags"),
        ({}, {"config": {"pulumi:autonaming": {}}}, "DESTRUCTIVE prod: config pulumi:autonaming"),
        ({}, {"config": {"pulumi:new": 1}}, "UNKNOWN prod: config pulumi:new"),
        ({}, {"config": {"gcp:accessToken": "ya29.abcdefghijklmn"}}, "config gcp:accessToken added ("),
        ({}, {"gcp:zone": "a"}, "UNKNOWN prod: setting of the stack"),
    ],
)
def test_stack_setting(tmp_path: Path, old: dict[str, Any], new: dict[str, Any], expected: str) -> None:
    """Each key of a stack file has its consequence and its risk; no encrypted value is printed."""
    sentences = "\n".join(restacked(tmp_path, old, new))
    assert expected in sentences
    assert '"secure"' not in sentences


def test_long_values_differ_where_they_are_cut(tmp_path: Path) -> None:
    """Two values that differ after thousands of characters are shown from their first difference on."""
    old, new = ({"config": {"gcp:x": ["a"] * 1000 + [end]}} for end in ("b", "c"))
    (sentence,) = restacked(tmp_path, old, new)
    assert len(sentence) < 800


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
    assert [line.partition(" added")[0] for line in lines(setup(), new)] == [
        "DESTRUCTIVE setting of Pulumi plugins.providers"
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"stacks/a.py": ("file", "1")}, "UNKNOWN stack program changed in stacks/a.py"),
        ({"stacks/a.py": ("file", "1")}, {}, "UNKNOWN stack program changed in stacks/a.py"),
        ({"stacks/a.py": ("file", "1")}, {"stacks/a.py": ("file", "1")}, ""),
        (
            {},
            {"stacks/a.pyc": ("file", "1")},
            "DESTRUCTIVE Pulumi runs or reads what this review does not: stacks/a.pyc",
        ),
        ({}, {"stacks/Pulumi.yaml": ("file", "1")}, "DESTRUCTIVE Pulumi runs or reads what this review does not"),
        ({}, {"uv.lock": ("file", "1")}, "UNKNOWN stack program changed in uv.lock"),
        ({}, {"a": ("link", "1")}, "DESTRUCTIVE Pulumi runs or reads what this review does not: a (link to /x)"),
        ({"a": ("link", "1")}, {"a": ("link", "1")}, ""),
        ({"a": ("link", "1")}, {"a": ("link", "2")}, "DESTRUCTIVE "),
        ({"a": ("link", "")}, {"a": ("link", "")}, "DESTRUCTIVE "),
        ({"a": ("link", "1")}, {"a": ("file", "1")}, "DESTRUCTIVE "),
        ({"a": ("submodule", "1")}, {}, "DESTRUCTIVE "),
        ({}, {"a": ("submodule", "1")}, "DESTRUCTIVE "),
        ({"a": ("file", "1")}, {"a": ("large", "2")}, "DESTRUCTIVE "),
        ({}, {"a": ("excess", "2")}, "DESTRUCTIVE "),
    ],
)
def test_file(old: Files, new: Files, expected: str) -> None:
    """A file that a review does not read is a risk when it changes; other files have the risk of their role."""
    sentences = lines(setup(files=old), setup(files=new))
    assert len(sentences) == bool(expected)
    assert expected in "".join(sentences)


def test_thousands_of_links_are_one_sentence() -> None:
    """However many files cannot be read, one sentence has their number and the first ones."""
    (sentence,) = lines(setup(), setup(files={f"l{index:04}": ("link", "1") for index in range(3000)}))
    assert "and 2994 more" in sentence
    assert len(sentence) < 500


def test_files_of_a_plugin(tmp_path: Path) -> None:
    """A change of a plugin in the repository is more than a change of the program."""
    before = settings(tmp_path / "a", {"plugins": {"providers": [{"name": "gcp", "path": "./bin"}]}}, {})
    after = before._replace(files=(FileVersion("bin/gcp", "file", "1"), FileVersion("binary", "file", "1")))
    located: list[LocatedStatement] = [*setup_statements(before, after)]
    assert [item.statement.risk for item in located] == [Risk.UNKNOWN, Risk.DESTRUCTIVE]
    assert located[1].plain.endswith("bin/gcp")


def test_renamed_project_does_not_repeat_its_config(tmp_path: Path) -> None:
    """A renamed project has one sentence: its config has another namespace, and configures no provider."""
    before = settings(tmp_path / "a", {"config": {"mine": "x"}}, {"config": {"mnist:spec": "tpucfg.yaml"}})
    after = settings(
        tmp_path / "b", {"name": "digits", "config": {"mine": "x"}}, {"config": {"digits:spec": "tpucfg.yaml"}}
    )
    assert lines(before, after) == []
