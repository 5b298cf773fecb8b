"""The runner of the commands in documents: parsing, comparing and rewriting."""

import os
from pathlib import Path
from textwrap import dedent

import pytest
import readme_blocks
from readme_blocks import ROOT, Step, matches, refreshed, steps_of


@pytest.fixture
def page() -> Path:
    """Path of a page in the root that does not exist yet."""
    return ROOT / f"page-{os.getpid()}.md"


def _steps(text: str) -> list[Step]:
    return list(steps_of(dedent(text)))


def test_console_block_gives_each_command_its_output() -> None:
    """A line with a dollar is a command; the lines up to the next command are its output, with their location."""
    assert _steps(
        """\
        Two commands:

        ```console
        $ echo a
        a
        $ cat <<END
        > b
        > END
        b
        ```
        """
    ) == [Step("echo a", ["a"], 4), Step("cat <<END\nb\nEND", ["b"], 8)]


def test_sh_block_is_one_command_that_has_to_succeed() -> None:
    """A block without output runs as one command, without the indentation of a surrounding list."""
    assert _steps("1. Go:\n\n   ```sh\n   cd x\n   ls\n   ```\n") == [
        Step("cd x\nls", None, 3, "   ")
    ]


def test_comment_with_a_reason_skips_the_next_block() -> None:
    """The comment applies only to the block directly below it."""
    text = "<!-- not run: why -->\n```sh\na\n```\n```sh\nb\n```\n<!-- not run: why -->\nBut:\n```sh\nc\n```\n"

    assert [step.command for step in _steps(text)] == ["b", "c"]


def test_hidden_command_runs_in_order() -> None:
    """A command in a comment runs at the position of the comment."""
    assert [step.command for step in _steps("<!-- run: a -->\n```sh\nb\n```\n")] == ["a", "b"]


def test_blocks_for_the_compiler_run_apart() -> None:
    """With the TPU compiler, only the blocks that need it run, and the commands in comments, which set the stage."""
    reason = "<!-- not run: the tests with the TPU compiler run it -->"
    text = f"<!-- run: a -->\n```sh\nb\n```\n{reason}\n```console\n$ c\nd\n```\n"

    assert [step.command for step in _steps(text)] == ["a", "b"]
    assert [step.command for step in steps_of(text, with_compiler=True)] == ["a", "c"]


@pytest.mark.slow
def test_the_compilers_python_is_python3(page: Path, tmp_path: Path) -> None:
    """A block for the compiler runs with the given Python as `python3`; a page without such a block runs nothing."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho compiler $1\n")
    python.chmod(0o755)
    try:
        page.write_text(
            "<!-- not run: the tests with the TPU compiler run it -->\n```console\n$ python3 -B\ncompiler -B\n```\n"
        )
        assert list(readme_blocks.differences(page, python)) == []
        page.write_text("<!-- run: exit 1 -->\n```console\n$ exit 1\n```\n")
        assert list(readme_blocks.differences(page, python)) == []
    finally:
        page.unlink()


def test_blocks_of_other_languages_are_ignored() -> None:
    """A block of YAML, or without a language, does not run."""
    assert not _steps("```yaml\na: 1\n```\n```\n$ a\n```\n")


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a "], ["a"], False),
        (["a.c"], ["abc"], False),
        (["...", "b", "..."], ["a", "b", "c"], True),
        (["a", "..."], ["a"], True),
        (["...", "b"], ["a", "b", "c"], False),
        ([], [], True),
    ],
)
def test_only_an_elision_matches_other_lines(
    expected: list[str], printed: list[str], same: bool
) -> None:
    """Output has to be equal, except for the lines that `...` replaces."""
    assert matches(expected, printed) is same


@pytest.mark.parametrize(
    ("expected", "result"),
    [
        (["old"], ["a", "b1", "c", "d"]),
        (["..."], ["..."]),
        (["old", "..."], ["a", "..."]),
        (["...", "b0", "..."], ["...", "b1", "..."]),
        (["...", "old"], ["...", "d"]),
    ],
)
def test_refreshed_output_keeps_its_elisions(expected: list[str], result: list[str]) -> None:
    """A block with elisions keeps its number of lines, around the line most similar to the old one."""
    assert refreshed(expected, ["a", "b1", "c", "d"]) == result


@pytest.mark.slow
def test_outdated_page_is_reported_and_rewritten(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong output and a failing command are reported with their lines; writing updates only the output."""
    page.write_text(
        "```console\n$ cd docs && echo a; exit 1\nb\n$ ls design.md\n```\n```sh\nfalse\n```\n"
    )
    try:
        assert readme_blocks.main([str(page)]) == 1
        messages = capsys.readouterr().err
        assert f"{page.name}:2: $ cd docs" in messages
        assert "-b\n+a" in messages
        assert f"{page.name}:6: $ false\n  ended with status 1" in messages

        assert readme_blocks.main(["--write", str(page)]) == 1
        assert (
            "echo a; exit 1\na\n$ ls design.md\ndesign.md\n```\n```sh\nfalse\n" in page.read_text()
        )
    finally:
        page.unlink()
