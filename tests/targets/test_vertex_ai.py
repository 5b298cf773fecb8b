"""Escaping of values for Vertex AI."""

import re

from hypothesis import given
from hypothesis import strategies as st

from jobs import job
from tpucfg.targets import vertex_ai


def service_reads(text: str) -> str:
    """Expand a variable's value as Vertex AI does: `$(NAME)` is replaced, and `$$(NAME)` becomes `$(NAME)`.

    https://cloud.google.com/vertex-ai/docs/reference/rest/v1/EnvVar
    """

    def read(found: re.Match[str]) -> str:
        dollars = len(found[1])
        return "$" * (dollars // 2) + (f"({found[2]})" if dollars % 2 == 0 else "<a variable>")

    return re.sub(r"(\$+)\(([^$()]*)\)", read, text)


@given(st.lists(st.sampled_from(["$", "$$", "$(A)", "$$(B)", ")", "A", " "])).map("".join))
def test_values_are_never_references(text: str) -> None:
    """However many dollars stand before a bracket, the program is given the value as the spec has it."""
    assert service_reads(vertex_ai.escape_references(text)) == text


def test_variables_are_escaped_and_arguments_are_not() -> None:
    """Only of variables does Google say that references are expanded; a dollar alone is none."""
    trainer = {"args": {"title": "costs $5 $(X)"}, "env": {"A": "$(B)", "C": "$5 $$(D)"}}
    program = vertex_ai.request_body(job("vertex-ai", "v2-8", trainer=trainer))["workerPoolSpecs"][0]["containerSpec"]

    assert program["args"][0] == "--title=costs $5 $(X)"
    assert program["env"] == [{"name": "A", "value": "$$(B)"}, {"name": "C", "value": "$5 $$$$(D)"}]
