"""A value set in a text at its place, with everything else as it was."""

import pytest

from tpucfg.yamldoc.edits import EditError, set_value
from tpucfg.yamldoc.reader import read_text

TEXT = """\
# a comment
training:
  tuned_on: v6e-16       # the size
  grad_accum: 16         # micro-batches

  model_parallel: 4

# another
trainer: {args: {remat: full}, image: x}   # one line
overrides:
  v6e-64:
    batch_size: 3
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (("training", "grad_accum"), "8", "grad_accum: 16 ", "grad_accum: 8 "),
        (
            ("training", "epochs"),
            "2",
            "  model_parallel: 4\n",
            "  model_parallel: 4\n  epochs: 2\n",
        ),
        (("trainer", "args", "remat"), '"none"', "remat: full", 'remat: "none"'),
        (("trainer", "args", "x.y"), "1", "remat: full}", "remat: full, x.y: 1}"),
        (
            ("overrides", "v6e-64", "grad_accum"),
            "2",
            "batch_size: 3\n",
            "batch_size: 3\n    grad_accum: 2\n",
        ),
        (
            ("overrides", "v5p-8", "args", "x"),
            "1",
            "size: 3\n",
            "size: 3\n  v5p-8: {args: {x: 1}}\n",
        ),
        (("tune", "sizes"), "[v5p-8]", "size: 3\n", "size: 3\ntune: {sizes: [v5p-8]}\n"),
    ],
)
def test_only_the_value_changes(path: tuple[str, ...], value: str, old: str, new: str) -> None:
    """A value is replaced or added where it belongs; comments, blank lines and other values stay."""
    document = set_value(read_text(TEXT, "spec"), path, value)
    assert document.text == TEXT.replace(old, new)
    assert document.findings == ()
    assert document.node(path) is not None


def test_windows_line_ends_stay() -> None:
    """A text with line ends of Windows keeps them."""
    text = TEXT.replace("\n", "\r\n")
    assert set_value(read_text(text, "spec"), ("training", "grad_accum"), "8").text == text.replace(
        "accum: 16", "accum: 8"
    )


@pytest.mark.parametrize("path", [("trainer", "args"), ("trainer", "image", "x"), ("overrides",)])
def test_only_single_values_are_set(path: tuple[str, ...]) -> None:
    """A mapping is not replaced, and a word gets no keys."""
    with pytest.raises(EditError):
        set_value(read_text(TEXT, "spec"), path, "1")
