"""Hypothesis strategies: specs and configs of the repository, with random changes."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from spec_factory import ROOT, SPEC
from tpucfg.yamldoc.reader import read_file


@cache  # and read in use, as every process of a test run imports this module
def corpus() -> list[tuple[str, Any]]:
    """Return every spec and config of the repository, with the name of its schema."""
    return [*_corpus()]


def _corpus() -> Iterator[tuple[str, Any]]:
    yield "tpucfg", deepcopy(SPEC)
    yield "tpucfg", read_file(ROOT / "tests/spec/every_key.yaml").data
    for path in (
        ROOT / "tpucfg.yaml",
        *ROOT.glob("examples/**/tpucfg.yaml"),
        *ROOT.glob("tests/bad/**/*.yaml"),
    ):
        yield "tpucfg", read_file(path).data
    for path in ROOT.glob("tests/official/samples/*/*/*.yaml"):
        yield path.parts[-3], yaml.safe_load(path.read_text())


_UNUSUAL_VALUES: Final[list[Any]] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        0.0,
        -0.0,
        1.0,
        1.5,
        1e3,
        1e300,
        5e-324,
        10**15,
        10**15 + 1,
        10**18,
        2**63,
        2**64,
        10**39,
        -(10**39),
    ),
    *(
        "",
        " ",
        "a",
        "A",
        "v2-8",
        "v2-8\n",
        "é",
        "日本",
        "😀",
        "a" * 64,
        "a" * 3000,
        "${bucket}/x",
        "1",
        "null",
        "\0",
        "\x7f",
        "²",
        "١",
    ),
    *(
        [],
        [[]],
        ["v2-8"],
        ["v2-8", "v2-8"],
        [1, None],
        {},
        {"a": 1},
        {"": ""},
        {"a\n": "b"},
        {"😀": {}},
        {"version": 1},
    ),
]


@st.composite
def mutated(draw: st.DrawFn, names: tuple[str, ...] = ()) -> tuple[str, Any]:
    """Return data of the corpus with up to three values replaced, added or removed. `names` limits the schemas."""
    name, data = draw(st.sampled_from([case for case in corpus() if not names or case[0] in names]))
    data = deepcopy(data)
    others = st.sampled_from(_UNUSUAL_VALUES) | st.sampled_from(
        [value for _, sample in corpus()[:2] for value in _parts(sample)]
    )
    for _ in range(draw(st.integers(1, 3))):
        containers = [part for part in _parts(data) if isinstance(part, dict | list) and part]
        if not containers:
            return name, draw(others)
        container: Any = draw(st.sampled_from(containers))
        key = draw(
            st.sampled_from(
                list(container) if isinstance(container, dict) else range(len(container))
            )
        )
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "remove":
            del container[key]
        elif action == "add" and isinstance(container, dict):
            container[
                draw(
                    st.sampled_from(
                        ["x", "a b", "é", "X\n", "extra", "TPU021", "v3-8", "", "a" * 300]
                    )
                )
            ] = deepcopy(draw(others))
        elif action == "add":
            container.append(deepcopy(draw(others)))
        else:
            container[key] = deepcopy(draw(others))
    return name, data


def _parts(data: Any) -> list[Any]:
    """Return the data and everything below it."""
    below = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [data, *(part for item in below for part in _parts(item))]
