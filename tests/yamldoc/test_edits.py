"""Values of the command line in place of a document's."""

import pytest

from tpucfg.yamldoc import Document, KeyPath
from tpucfg.yamldoc.edits import parse_change, replace_values
from tpucfg.yamldoc.reader import read_text

TEXT = """\
name: a
training: {rate: 1e-3, steps: {warmup: 200}}
sizes: [v2-8, v2-32]
"""


def changed(*arguments: str) -> Document:
    """Return the document with these changes."""
    changes = [change for argument in arguments if (change := parse_change(argument))]
    assert len(changes) == len(arguments)
    return replace_values(read_text(TEXT, "x.yaml"), changes)


@pytest.mark.parametrize(
    ("argument", "path", "value"),
    [
        ("name=b", ("name",), "b"),
        ("training.steps={}", ("training", "steps"), {}),
        ("training.steps.warmup=", ("training", "steps"), {"warmup": None}),
        ('training.steps."eval.every"=7', ("training", "steps"), {"warmup": 200, "eval.every": 7}),
        ("training.rate.x=1", ("training", "rate"), {"x": 1}),
        ("sizes[1]=v2-128", ("sizes",), ["v2-8", "v2-128"]),
        ("sizes[2]=v2-128", ("sizes",), ["v2-8", "v2-32", "v2-128"]),
        ("sizes=[v3-8]", ("sizes",), ["v3-8"]),
        ("new.key={a: [1, no]}", ("new",), {"key": {"a": [1, "no"]}}),
        ("name='a=b'", ("name",), "a=b"),
    ],
)
def test_a_value_replaces_that_of_the_document(argument: str, path: KeyPath, value: object) -> None:
    """The values are read as those of a file are; what follows the first = is the value."""
    document = changed(argument)
    node = document.node(path)
    assert node is not None
    assert (node.value, document.findings) == (value, ())
    assert document.data.keys() >= {"name", "training", "sizes"}


def test_a_number_keeps_its_text() -> None:
    """The text of a number reaches the program, and the last of two changes wins."""
    assert (
        changed("training.rate=3e-4", "training.rate=2e-4").source_text(("training", "rate"))
        == "2e-4"
    )


def test_the_argument_is_the_location() -> None:
    """A finding has the option with its path, and the column of the key or the value; the rest keeps its own."""
    document = changed("training.rate=2e-4", "training.steps.new=3")
    assert str(document.value_location(("training", "rate"))) == "--set training.rate:1:15"
    assert str(document.key_location(("training", "rate"))) == "--set training.rate:1:1"
    assert (
        str(document.value_location(("training", "steps", "new")))
        == "--set training.steps.new:1:20"
    )
    assert str(document.key_location(("training", "steps", "warmup"))) == "x.yaml:2:32"
    assert document.changed_section(document.value_location(("training", "rate"))) == "training"
    assert document.changed_section(document.value_location(("name",))) is None


def test_a_value_that_is_not_yaml_is_a_finding() -> None:
    """Its location is in the argument, and the document keeps its value."""
    document = changed("training.rate={a")
    assert [str(finding.location) for finding in document.findings] == ["--set training.rate:1:17"]
    assert document.source_text(("training", "rate")) == "1e-3"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("sizes[9]=v6e-256", "sizes has no [9]: it is a list of 2 items, counted from 0"),
        ("name[0]=a", "name has no [0]: it is no list"),
        ("sizes.0=v6e-256", "sizes has no 0: it is a list of 2 items, counted from 0"),
        ("sizes.0.x=v6e-256", "sizes has no 0: it is a list of 2 items, counted from 0"),
        ("sizes.first=v6e-256", "sizes has no first: it is a list of 2 items, counted from 0"),
    ],
)
def test_an_item_that_a_list_cannot_have_is_a_finding(argument: str, message: str) -> None:
    """Its location is the argument, and the document keeps its value."""
    document = changed(argument)
    assert [(finding.message, finding.location.line) for finding in document.findings] == [
        (message, 1)
    ]
    assert document.findings[0].location.file == f"--set {argument.partition('=')[0]}"
    assert document.data == changed().data


@pytest.mark.parametrize("argument", ["", "a", "=1", "a.=1", ".=1", 'a."b=1', "a[x]=1", "a]=1"])
def test_malformed_arguments_are_no_changes(argument: str) -> None:
    """An argument is a path and a value."""
    assert parse_change(argument) is None
