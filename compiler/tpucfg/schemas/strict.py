"""The validator that explains: jsonschema's, made to say yes exactly where the quick one does."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from tpucfg.schemas import load


@cache
def validator(name: str) -> Any:
    """The validator of jsonschema that explains; it says yes exactly where the quick one does."""

    def whole(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not fits(pattern, instance):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")

    def unique(_: Any, wanted: bool, instance: Any, __: Any) -> Iterator[Any]:
        # Of texts alone, as the items of all such lists are: the library's own takes the square of their number.
        texts = [item for item in instance if isinstance(item, str)] if isinstance(instance, list) else []
        if wanted and len(set(texts)) < len(texts):
            yield ValidationError("an item is there twice")

    rules = {"pattern": whole, "uniqueItems": unique}
    strict: Any = extend(Draft202012Validator, rules)  # type: ignore[no-untyped-call]  # as the stubs have it
    return strict(load(name))


def fits(pattern: str, text: str) -> bool:
    """`$` of Python also matches before a last line break; that of JSON Schema's regular expressions does not."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text) is not None
