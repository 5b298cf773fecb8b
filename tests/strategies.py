"""Specs and configs, right and wrong, and what becomes of them when something in them is changed at random."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import yaml
from hypothesis import strategies as st

from spec_factory import ROOT, SPEC
from tpucfg.yamldoc.reader import read_file


def _corpus() -> Iterator[tuple[str, Any]]:
    yield "tpucfg", deepcopy(SPEC)
    yield "tpucfg", read_file(ROOT / "tests/spec/every_key.yaml").data
    for path in (ROOT / "tpucfg.yaml", *ROOT.glob("examples/**/tpucfg.yaml"), *ROOT.glob("tests/bad/**/*.yaml")):
        yield "tpucfg", read_file(path).data
    for path in ROOT.glob("tests/official/samples/*/*/*.yaml"):
        yield path.parts[-3], yaml.safe_load(path.read_text())


CORPUS: Final = list(_corpus())
"""Every spec and every config that the repository holds, with the name of its schema."""
_STRANGE: Final[list[Any]] = [
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
    """Data of the corpus, of these schemas or of any, with up to three things in it replaced, added or left out."""
    name, data = draw(st.sampled_from([case for case in CORPUS if not names or case[0] in names]))
    data = deepcopy(data)
    others = st.sampled_from(_STRANGE) | st.sampled_from([value for _, it in CORPUS[:2] for value in _parts(it)])
    for _ in range(draw(st.integers(1, 3))):
        places = [it for it in _parts(data) if isinstance(it, dict | list) and it]
        if not places:
            return name, draw(others)
        location: Any = draw(st.sampled_from(places))
        key = draw(st.sampled_from(list(location) if isinstance(location, dict) else range(len(location))))
        action = draw(st.sampled_from(["replace", "remove", "add"]))
        if action == "remove":
            del location[key]
        elif action == "add" and isinstance(location, dict):
            location[draw(st.sampled_from(["x", "a b", "é", "X\n", "extra", "TPU021", "v3-8", "", "a" * 300]))] = (
                deepcopy(draw(others))
            )
        elif action == "add":
            location.append(deepcopy(draw(others)))
        else:
            location[key] = deepcopy(draw(others))
    return name, data


def _parts(data: Any) -> list[Any]:
    """The data and everything below it."""
    below = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return [data, *(part for item in below for part in _parts(item))]
