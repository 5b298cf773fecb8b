"""Numbers of the spec reach the program with their source text."""

import json
from fractions import Fraction
from typing import Any

import pytest

from spec_factory import WITHOUT, project, spec
from tpucfg.spec.project import Number


@pytest.mark.parametrize("text", ["10", "2.5", "1e1", "1.0", "0x10", "0o17", "+3", ".5", "5."])
def test_a_number_keeps_its_source_text(text: str) -> None:
    """The program gets the digits of the spec; the exact value is kept beside them."""
    loaded_project = project(
        _as_text(
            spec(training__train_steps=WITHOUT, training__epochs=0),
            '"epochs": 0',
            f'"epochs": {text}',
        )
    )
    assert loaded_project.training.epochs is not None
    assert loaded_project.training.epochs.text == text
    assert float(loaded_project.training.epochs.value) == (
        float(text) if "x" not in text and "o" not in text else int(text, 0)
    )


def test_an_alias_keeps_the_source_text() -> None:
    """A number that is written once and used through an alias has one source text at both locations."""
    text = _as_text(
        spec(training__learning_rate=0), '"learning_rate": 0', '"learning_rate": &r 1e-3'
    )
    loaded_project = project(_as_text(text, '"image"', '"args": {"r": [0.10, 2]}, "image"'))
    assert loaded_project.training.learning_rate == Number(Fraction(1, 1000), "1e-3")
    assert loaded_project.base.trainer.args[0].values == ("0.10", "2")


def _as_text(data: Any, old: str, new: str) -> str:
    """Return a spec as text with one replacement that JSON's writer cannot produce."""
    text = data if isinstance(data, str) else json.dumps(data)
    assert old in text
    return text.replace(old, new)
