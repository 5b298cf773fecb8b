"""The choice of tests for changed files."""

import pytest
from changed_tests import MAX_FILES, ROOT, mirrored_tests


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        (
            "compiler/tpucfg/yamldoc/reader.py",
            ["tests/yamldoc/test_reader.py", "tests/frozen", "tests/test_bad_specs.py"],
        ),
        (
            "compiler/tpucfg/redaction.py",
            ["tests/test_redaction.py", "tests/frozen", "tests/test_bad_specs.py"],
        ),
        ("tests/catalog/test_data.py", ["tests/catalog/test_data.py", "tests/catalog"]),
        ("tests/bad/TPU013-idle/tpucfg.yaml", ["tests/frozen", "tests/test_bad_specs.py"]),
        ("docs/review.md", ["tests/docs/test_markdown.py", "tests/findings/test_pages.py"]),
        ("stacks/bucket.py", ["tests/stacks"]),
        ("Makefile", ["tests/project"]),
        ("tests/process.py", ["tests/project"]),
    ],
)
def test_changed_file_has_its_tests(changed: str, tests: list[str]) -> None:
    """The test of the module comes first, then what a change of its folder could break."""
    chosen = mirrored_tests([changed])
    assert chosen[: len(tests)] == tests


def test_choice_is_bounded() -> None:
    """A change of everything still chooses so few tests that they end within a minute."""
    changed = [str(path.relative_to(ROOT)) for path in (ROOT / "compiler").rglob("*.py")]
    files = [
        path
        for name in mirrored_tests(changed)
        for path in [ROOT / name, *(ROOT / name).rglob("test_*.py")]
    ]
    assert len([path for path in files if path.is_file()]) <= MAX_FILES
