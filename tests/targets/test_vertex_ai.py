"""Escaping of values for Vertex AI."""

import re

from hypothesis import given
from hypothesis import strategies as st

from jobs import job
from tpucfg.targets import vertex_ai
from tpucfg.targets.vertex_ai.request import escape_references


def expanded_by_the_service(text: str) -> str:
    """Expand a variable's value as Vertex AI does: `$(NAME)` is replaced, and `$$(NAME)` becomes `$(NAME)`.

    https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar
    """

    def expand(match: re.Match[str]) -> str:
        dollars = len(match[1])
        return "$" * (dollars // 2) + (f"({match[2]})" if dollars % 2 == 0 else "<a variable>")

    return re.sub(r"(\$+)\(([^$()]*)\)", expand, text)


@given(st.lists(st.sampled_from(["$", "$$", "$(A)", "$$(B)", ")", "A", " "])).map("".join))
def test_values_are_never_references(text: str) -> None:
    """With any number of dollar signs before a parenthesis, the program gets the value of the spec."""
    assert expanded_by_the_service(escape_references(text)) == text


def test_variables_are_escaped_and_arguments_are_not() -> None:
    """By Google's documentation, references are expanded only in variables, and a single dollar is no reference."""
    trainer = {"args": {"title": "costs $5 $(X)"}, "env": {"A": "$(B)", "C": "$5 $$(D)"}}
    program = vertex_ai.request_body(job("vertex-ai", "v2-8", trainer=trainer))["workerPoolSpecs"][0]["containerSpec"]

    assert program["args"][0] == "--title=costs $5 $(X)"
    assert program["env"] == [{"name": "A", "value": "$$(B)"}, {"name": "C", "value": "$5 $$$$(D)"}]
