"""The count of code."""

from code_lines import count_code_lines


def test_code_lines_are_neither_blank_nor_comments_nor_docstrings() -> None:
    """Only code counts, each line of a statement over several lines once."""
    code = '"""Docstring."""\n\n# Comment.\nx = (\n    1,  # one\n)\n"""Of x."""\ny = """\n\n"""\n'
    assert count_code_lines(code) == 6
