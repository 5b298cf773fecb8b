"""Layers are merged by rules that a second, naive implementation reproduces."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec_factory import document, project, spec
from tpucfg.spec.layers import Layered, layers_of, merge, merge_layers
from tpucfg.yamldoc.document import KeyPath

NAMES = ("a", "b", "c")
SCALARS = st.one_of(
    st.integers(0, 3), st.sampled_from(["x", "y"]), st.lists(st.integers(0, 2), max_size=2)
)
ENV = st.dictionaries(st.sampled_from(NAMES), st.one_of(st.none(), st.sampled_from(["x", "y"])))
ARGS = st.dictionaries(
    st.sampled_from(NAMES), st.one_of(st.none(), SCALARS, st.just({"remove": True}))
)
CAPACITY = st.one_of(
    st.none(),
    st.sampled_from(["spot", "on-demand"]),
    st.fixed_dictionaries({"reservation": st.sampled_from(NAMES)}),
)
TRAINER = st.fixed_dictionaries(
    {}, optional={"env": ENV, "args": ARGS, "restarts": st.none() | st.integers(0, 2)}
)
EXTRA = st.recursive(
    SCALARS, lambda inner: st.dictionaries(st.sampled_from(NAMES), inner), max_leaves=4
)
TARGETS = st.fixed_dictionaries(
    {}, optional={"gke": st.fixed_dictionaries({}, optional={"extra": EXTRA, "queue": ENV})}
)
LAYER = st.fixed_dictionaries(
    {}, optional={"capacity": CAPACITY, "trainer": TRAINER, "targets": TARGETS}
)
LAYERS = st.tuples(LAYER, LAYER, LAYER, LAYER)


def data_of(layers: tuple[Any, ...]) -> Any:
    """Return a spec whose four layers are those of the environment dev and the size v2-8."""
    top, environment, size, both = deepcopy(layers)
    return {
        **top,
        "environments": {"dev": {**environment, "overrides": {"v2-8": both}}},
        "overrides": {"v2-8": size},
    }


def naive(layers: list[Any], path: tuple[str, ...] = ()) -> Any:
    """Merge plain values from first to last: an oracle that copies everything and knows no locations."""
    result: Any = None
    for layer in layers:
        if not isinstance(layer, dict):
            result = deepcopy(layer)
            continue
        merged = dict(result) if isinstance(result, dict) else {}
        for key, value in layer.items():
            removes = value == {"remove": True} if path == ("trainer", "args") else value is None
            if removes:
                merged.pop(key, None)
            else:
                merged[key] = naive([merged.get(key), value], (*path, key))
        result = merged
    return result


def leaves(layered: Layered) -> list[Layered]:
    """Return the values that are no mapping, and the empty mappings."""
    children = layered.children().values()
    return [leaf for child in children for leaf in leaves(child)] if children else [layered]


@given(LAYERS)
def test_the_result_is_that_of_a_naive_merge(layers: tuple[Any, ...]) -> None:
    """The later layer wins, mappings merge, null and remove take away, lists replace, and keys keep their place."""
    merged = merge_layers(data_of(layers), "dev", "v2-8").value
    expected = naive([{}, *(layer for layer in layers if layer)])
    assert merged == expected
    for key, value in merged.items():
        assert repr(value) == repr(expected[key])  # also the order of keys


@given(LAYERS)
def test_each_value_has_the_path_that_it_comes_from(layers: tuple[Any, ...]) -> None:
    """The source path of every value leads to an equal value in the spec."""
    data = data_of(layers)
    merged = merge_layers(data, "dev", "v2-8")
    for leaf in leaves(merged):
        value = data
        for step in leaf.path:
            value = value[step]
        assert leaf.value in (value, {})  # every key of a mapping may have been taken away


@pytest.mark.parametrize("layer", ["top", "environment"])
def test_no_removal_is_left_in_the_first_layer_of_a_mapping(layer: str) -> None:
    """A null without an earlier value is as if it were absent, at any depth: a target reads it with a default."""
    targets = {"gke": {"namespace": None, "queue": "q", "extra": {"spec": {"suspend": None}}}}
    data = {
        "capacity": None,
        "trainer": {"args": {"profile": None, "x": {"remove": True}}},
        "targets": targets,
    }
    merged = merge_layers(
        data if layer == "top" else {"environments": {"dev": data}}, "dev", "v2-8"
    )
    expected = {
        "trainer": {"args": {"profile": None}},
        "targets": {"gke": {"queue": "q", "extra": {"spec": {}}}},
    }
    assert merged.value == expected


@given(LAYERS)
def test_merging_changes_no_input(layers: tuple[Any, ...]) -> None:
    """The spec is the same before and after."""
    data = data_of(layers)
    copy = deepcopy(data)
    merge_layers(data, "dev", "v2-8")
    assert data == copy


@given(LAYERS)
def test_layers_apply_one_after_the_other(layers: tuple[Any, ...]) -> None:
    """A result does not depend on the layers that other environments and sizes have."""
    data = data_of(layers)
    one_by_one = Layered({}, ())
    for layer in layers_of(data, "dev", "v2-8"):
        one_by_one = merge(one_by_one, layer)
    assert one_by_one.value == merge_layers(data, "dev", "v2-8").value
    others = {
        **data,
        "environments": {**data["environments"], "prod": {"trainer": {"restarts": 9}}},
    }
    assert merge_layers(others, "dev", "v2-8").value == merge_layers(data, "dev", "v2-8").value


NO_REMOVAL = st.fixed_dictionaries(
    {},
    optional={
        "trainer": st.fixed_dictionaries(
            {},
            optional={"env": st.dictionaries(st.sampled_from(NAMES), st.just("x") | st.just("y"))},
        )
    },
)


@given(NO_REMOVAL, NO_REMOVAL, NO_REMOVAL)
def test_merging_is_associative_without_removals(first: Any, second: Any, third: Any) -> None:
    """It does not matter which two layers are merged first, unless one of them takes something away."""
    one, two, three = (
        Layered(value, (name,)) for name, value in zip(NAMES, (first, second, third), strict=True)
    )
    left, right = merge(merge(one, two), three), merge(one, merge(two, three))
    assert left.value == right.value
    assert {leaf.path for leaf in leaves(left)} == {leaf.path for leaf in leaves(right)}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("trainer", "image"), "c"),
        (("trainer", "env", "A"), "2"),
        (("trainer", "env", "B"), None),
        (("trainer", "args", "x"), None),
    ],
)
def test_settings_of_a_job_have_their_paths(path: KeyPath, value: Any) -> None:
    """`Settings.source` leads to the layer that sets a value; null is a bare flag in args."""
    data = spec(
        trainer={"image": "a", "env": {"A": "1", "B": "1"}, "args": {"x": 1}},
        environments__dev__trainer={"image": "b", "env": {"A": "2", "B": None}},
        overrides={"v2-32": {"args": {"x": None}, "trainer": {"image": "c"}}},
    )
    settings = project(data).settings["dev", "v2-32"]
    setting = settings.layers.find(*map(str, path))
    node = document(data).node(settings.source(path))
    assert (setting.value if setting else None) == value
    assert node is None or node.value == value or path == ("trainer", "env", "B")
