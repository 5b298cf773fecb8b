"""The project's vocabulary: names and prose use the terms of the field, as far as a test can check that."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CODE: Final = ("compiler", "stacks", "tools", "benchmarks", "tests", "templates/trainer")
OPENING: Final = re.compile(r"(What|Whether|How|Why|Where|Who|Whom|Whose|Likewise|The same)\b")
"""A docstring opens with a verb or with the name of the thing, never with a question."""
_PRIVATE: Final = r"catalogues?|likewise|nobody|somebody|whoever|mends?|mended|climb\w*"
PROSE: Final = re.compile(rf"\b({_PRIVATE}|says|tells|told)\b", re.IGNORECASE)
"""Words that code and its documentation have better terms for: catalog, scale up, returns, prints, raises."""
DOCUMENTS: Final = re.compile(rf"\b({_PRIVATE})\b", re.IGNORECASE)
CONSTANT: Final = re.compile(r"_?(MOST|LARGEST|LONGEST|DEEPEST|FEWEST|SMALLEST|SHORTEST)(_|$)")
"""A bound is called MAX_… or MIN_…."""
VARIABLES: Final = frozenset(("it", "found", "made", "said", "told"))
"""Names of variables that tell no reader what the value is."""
MODULES: Final = frozenset(("model", "models", "utils", "helpers", "misc", "common_utils"))
"""Module names that do not tell a stranger what is inside."""


def _files(*folders: str, ending: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    paths = (ROOT / name for name in listed.splitlines() if name.endswith(ending))
    return [
        path
        for path in paths
        if path.is_file() and "tests/bad/" not in path.as_posix() and path != Path(__file__)
    ]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


PYTHON: Final = _files(*CODE, ending=".py")
SOURCES: Final = [path for path in PYTHON if not _name(path).startswith("tests/")]
MARKDOWN: Final = [
    path
    for path in _files(".", ending=".md")
    if not _name(path).startswith(("docs/reference/", "tests/", "benchmarks/"))
]


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring, those below constants and fields included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def _comments(path: Path) -> Iterator[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return ((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)


def _bound_names(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


@pytest.mark.slow
def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    """No docstring opens with a question word or refers to the one before it."""
    openings = (
        (path, line, text)
        for path in PYTHON
        for line, text in _docstrings(path)
        if OPENING.match(text)
    )
    assert [f"{_name(path)}:{line}: {text[:60]}" for path, line, text in openings] == []


@pytest.mark.slow
def test_comments_and_docstrings_use_the_terms_of_the_field() -> None:
    """No comment or docstring uses a private term or lets code speak."""
    texts = (
        (path, line, text)
        for path in PYTHON
        for line, text in (*_docstrings(path), *_comments(path))
    )
    assert [
        f"{_name(path)}:{line}: {word[0]}"
        for path, line, text in texts
        for word in PROSE.finditer(text)
    ] == []


@pytest.mark.slow
def test_documents_use_the_terms_of_the_field() -> None:
    """No page uses a private term outside its code blocks, links and commands."""
    private = []
    for path in MARKDOWN:
        prose = re.sub(
            r"^( *)```.*?^\1```",
            "",
            path.read_text(encoding="utf-8"),
            flags=re.DOTALL | re.MULTILINE,
        )
        prose = re.sub(r"`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", "", prose, flags=re.DOTALL)
        private += [f"{_name(path)}: {word[0]}" for word in DOCUMENTS.finditer(prose)]
    assert private == []


@pytest.mark.slow
def test_names_tell_what_they_are() -> None:
    """No bound is called MOST_…, and no variable `it`, `found`, `made`, `said` or `told`, in tests either."""
    names = ((path, line, name) for path in PYTHON for line, name in _bound_names(path))
    wrong = [
        (path, line, name)
        for path, line, name in names
        if CONSTANT.match(name) or name in VARIABLES
    ]
    assert [f"{_name(path)}:{line}: {name}" for path, line, name in wrong] == []


def test_module_names_tell_what_is_inside() -> None:
    """No module is called `model` or `utils`."""
    assert [_name(path) for path in SOURCES if path.stem in MODULES] == []
