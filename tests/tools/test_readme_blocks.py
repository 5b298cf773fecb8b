"""The runner of the documents' blocks: what it takes for a command, and what it lets pass."""

import os
from pathlib import Path
from textwrap import dedent

import pytest
import readme_blocks
from readme_blocks import ROOT, Step, matches, refreshed, steps_of


@pytest.fixture
def page() -> Path:
    """The place of a page of the root that nobody has written."""
    return ROOT / f"page-{os.getpid()}.md"


def _steps(text: str) -> list[Step]:
    return list(steps_of(dedent(text)))


def test_console_block_gives_each_command_its_output() -> None:
    """A line with a dollar is a command; what follows up to the next one is its output, with its place."""
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
    """A block without output is run as it stands, and without the indent of the list that it is part of."""
    assert _steps("1. Go:\n\n   ```sh\n   cd x\n   ls\n   ```\n") == [Step("cd x\nls", None, 3, "   ")]


def test_comment_keeps_a_block_from_being_run_and_gives_the_reason() -> None:
    """The comment holds for the next block alone, and for none where a sentence stands between them."""
    text = "<!-- not run: why -->\n```sh\na\n```\n```sh\nb\n```\n<!-- not run: why -->\nBut:\n```sh\nc\n```\n"

    assert [step.command for step in _steps(text)] == ["b", "c"]


def test_hidden_command_is_run_in_its_turn() -> None:
    """What a page needs and does not talk about is run where its comment stands."""
    assert [step.command for step in _steps("<!-- run: a -->\n```sh\nb\n```\n")] == ["a", "b"]


def test_other_languages_are_no_commands() -> None:
    """A block of YAML, or of no language, is not run."""
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
def test_only_an_elision_stands_for_other_lines(expected: list[str], printed: list[str], same: bool) -> None:
    """Output is compared line by line and letter by letter, but for the lines that `...` stands for."""
    assert matches(expected, printed) is same


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        (["old"], ["a", "b1", "c", "d"]),
        (["..."], ["..."]),
        (["old", "..."], ["a", "..."]),
        (["...", "b0", "..."], ["...", "b1", "..."]),
        (["...", "old"], ["...", "d"]),
    ],
)
def test_refreshed_output_keeps_its_elisions(expected: list[str], shown: list[str]) -> None:
    """Of a block with elisions as many lines are shown as before, around the line that is nearest to the old one."""
    assert refreshed(expected, ["a", "b1", "c", "d"]) == shown


def test_page_that_is_not_true_is_found_and_fixed(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong output and a failing command are both named with their lines; writing fixes the output and no more."""
    page.write_text("```console\n$ cd docs && echo a; exit 1\nb\n$ ls design.md\n```\n```sh\nfalse\n```\n")
    try:
        assert readme_blocks.main([str(page)]) == 1
        said = capsys.readouterr().err
        assert f"{page.name}:2: $ cd docs" in said
        assert "-b\n+a" in said
        assert f"{page.name}:6: $ false\n  ended with status 1" in said

        assert readme_blocks.main(["--write", str(page)]) == 1
        assert "echo a; exit 1\na\n$ ls design.md\ndesign.md\n```\n```sh\nfalse\n" in page.read_text()
    finally:
        page.unlink()
