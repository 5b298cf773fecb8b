"""The choice of tests for changed files."""

import pytest
from changed_tests import MAX_FILES, ROOT, needed_tests, slow_ids

ALWAYS = {
    "tests/examples/test_configs.py",
    "tests/test_bad_specs.py",
    "tests/findings/test_pages.py",
}
"""Some of the tests that see any change of what the commands print, and of the pages that show it."""


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ("compiler/tpucfg/yamldoc/reader.py", ["tests/yamldoc/test_reader.py"]),
        ("compiler/tpucfg/redaction.py", ["tests/test_redaction.py"]),
        ("compiler/tpucfg/fit/worker/hlo_clock.py", ["tests/fit/test_hlo_clock.py"]),
        ("compiler/tpucfg/catalog/data/v6e.yaml", ["tests/catalog/test_data.py"]),
        ("tests/catalog/test_data.py", ["tests/catalog/test_data.py"]),
        ("tests/bad/TPU013-idle/expected.txt", []),
        ("tests/changes/risks.yaml", ["tests/changes/test_risks.py"]),
        ("tests/yaml_texts.py", ["tests/yamldoc/test_reader.py"]),
        (
            "templates/gke/config.yaml.j2",
            ["tests/targets/test_gke.py", "tests/render/test_validate.py"],
        ),
        ("schema/gke.schema.json", ["tests/schema/test_api_schemas.py"]),
        ("stacks/__main__.py", ["tests/stacks/test_mocks.py"]),
        ("compiler/tpucfg/stack/bucket.py", ["tests/stacks/test_mocks.py"]),
        ("tools/apischema/tables.py", ["tests/schema/test_api_schemas.py"]),
        (".github/actions/comment/comment.sh", ["tests/workflows/test_comment_script.py"]),
        ("docs/review.md", ["tests/docs/test_markdown.py"]),
        ("README.md", ["tests/catalog/test_docs.py"]),
        ("examples/chat/tpucfg.yaml", ["tests/examples/test_examples.py"]),
        ("tpucfg.yaml", []),
        ("Makefile", ["tests/project/test_ci.py"]),
    ],
)
def test_changed_file_has_its_tests(changed: str, tests: list[str]) -> None:
    """The tests that read a file run, and always those of golden and generated files."""
    assert {*tests, *ALWAYS} <= {*needed_tests([changed])}


@pytest.mark.parametrize(
    ("changed", "id_"),
    [
        ("tests/review/comments/drift.md", "[drift]"),
        ("tests/attacks/recorded/access-account-key.json", "[access-account-key]"),
        ("docs/review.md", "[docs/review.md]"),
    ],
)
def test_the_slow_test_of_a_golden_file_or_a_page_runs(changed: str, id_: str) -> None:
    """Of slow tests, only the one about the changed file is quick enough."""
    assert slow_ids([changed, "compiler/tpucfg/redaction.py"]) == [id_]


def test_choice_is_bounded() -> None:
    """A change of everything still chooses so few tests that they end within a minute."""
    changed = [str(path.relative_to(ROOT)) for path in (ROOT / "compiler").rglob("*.py")]
    assert len(needed_tests(changed)) == MAX_FILES + len(needed_tests([]))
