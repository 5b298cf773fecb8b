"""A number of the spec reaches the program as it is written."""

import json
from fractions import Fraction
from typing import Any

import pytest

from spec_factory import WITHOUT, project, spec
from tpucfg.spec.project import Number


@pytest.mark.parametrize("text", ["10", "2.5", "1e1", "1.0", "0x10", "0o17", "+3", ".5", "5."])
def test_a_number_stays_as_it_is_written(text: str) -> None:
    """The program gets the digits that the spec has; the exact value stands beside them."""
    made = project(
        _as_text(spec(training__train_steps=WITHOUT, training__epochs=0), '"epochs": 0', f'"epochs": {text}')
    )
    assert made.training.epochs is not None
    assert made.training.epochs.text == text
    assert float(made.training.epochs.value) == (float(text) if "x" not in text and "o" not in text else int(text, 0))


def test_an_alias_brings_the_writing_along() -> None:
    """A number that is written once and used twice is the same text in both places."""
    text = _as_text(spec(training__learning_rate=0), '"learning_rate": 0', '"learning_rate": &r 1e-3')
    made = project(_as_text(text, '"image"', '"args": {"r": [0.10, 2]}, "image"'))
    assert made.training.learning_rate == Number(Fraction(1, 1000), "1e-3")
    assert made.trainer.args[0].values == ("0.10", "2")


def _as_text(data: Any, old: str, new: str) -> str:
    """A spec as text with something written otherwise than JSON's writer would."""
    text = data if isinstance(data, str) else json.dumps(data)
    assert old in text
    return text.replace(old, new)
