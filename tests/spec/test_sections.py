"""A rule that compares sections is skipped while one of them is broken."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tpucfg
from tpucfg.findings import Finding, Location
from tpucfg.schemas import load_schema
from tpucfg.spec.sections import apply_rules, compares
from tpucfg.yamldoc.document import Document

_WHOLE = Document("tpucfg.yaml", "", None)
_PARTLY_VALID = _WHOLE._replace(broken=frozenset(("training",)))


def _rule(_: Document) -> Iterator[Finding]:
    yield Finding.of("TPU007", "wrong", Location("tpucfg.yaml", 1, 1))


def test_a_rule_about_a_broken_section_is_skipped() -> None:
    """A stand-in could be the cause of its finding."""
    rules = (compares("training", "sizes")(_rule), compares("sizes")(_rule), compares()(_rule))
    assert len([*apply_rules(rules, _WHOLE)]) == 3
    assert len([*apply_rules(rules, _PARTLY_VALID)]) == 2


def test_a_rule_without_a_declaration_runs_on_a_whole_spec_only() -> None:
    """A new rule is skipped wherever it could be wrong."""
    assert len([*apply_rules([_rule], _WHOLE)]) == 1
    assert [*apply_rules([_rule], _PARTLY_VALID)] == []


def test_every_declared_section_is_one_of_the_spec() -> None:
    """A misspelt section would be compared as if it were never broken."""
    sources = Path(tpucfg.__file__).parent.rglob("*.py")
    calls = [
        node
        for source in sources
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "compares"
    ]
    constants = [arg.value for call in calls for arg in call.args if isinstance(arg, ast.Constant)]
    assert constants
    assert {*constants} <= load_schema("tpucfg")["properties"].keys()
