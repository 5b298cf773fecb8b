"""The kinds of inputs: how one is made, and what has to hold of what the command does with it."""

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from fuzz import comparing, logs, texts, trees, words
from fuzz.cases import Case, Entry
from fuzz.trying import Shell


class Kind(NamedTuple):
    """One kind of input."""

    share: int
    """Of all inputs, beside the other kinds'."""
    make: Callable[[Random], tuple[tuple[Entry, ...], tuple[str, ...]]]
    """What lies in the folder, and the command's arguments where they are what is tried."""
    prove: Callable[[Case, Random, Shell], None]
    """Runs commands in that folder; raises AssertionError where something does not hold."""


KINDS: Final = {
    "spec": Kind(50, texts.make_spec, texts.prove_spec),
    "config": Kind(12, texts.make_config, texts.prove_config),
    "stack file": Kind(10, texts.make_stack, texts.prove_stack),
    "stack outputs": Kind(4, texts.make_outputs, texts.prove_outputs),
    "tree": Kind(8, trees.make_tree, trees.prove_tree),
    "arguments": Kind(6, words.make_words, words.prove_words),
    "folders": Kind(4, comparing.make_folders, comparing.prove_folders),
    "preview": Kind(8, comparing.make_preview, comparing.prove_preview),
    "results": Kind(6, comparing.make_results, comparing.prove_results),
    "log": Kind(4, logs.make_log, logs.prove_log),
}
"""By name."""


def make(seed: int, number: int, only: str | None = None) -> Case:
    """The input of that number: the same one wherever and whenever it is made."""
    rng = Random(f"{seed} {number}")  # noqa: S311 - nothing here is a secret
    kind = only or rng.choices(list(KINDS), [kind.share for kind in KINDS.values()])[0]
    entries, arguments = KINDS[kind].make(rng)
    return Case(kind, rng.getrandbits(32), entries, arguments)


def prove(case: Case, shell: Shell) -> None:
    """Tries the input in the current folder, where it lies.

    Raises:
        AssertionError: What has to hold does not.
    """
    KINDS[case.kind].prove(case, Random(case.salt), shell)  # noqa: S311 - likewise
