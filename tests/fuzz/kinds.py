"""Kinds of inputs: a function that generates one, and a function that checks the command's behaviour."""

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from fuzz import arguments, comparisons, logs, texts, trees
from fuzz.cases import Case, Entry
from fuzz.shell import Shell


class Kind(NamedTuple):
    """One kind of input."""

    share: int
    """Relative frequency among all inputs."""
    make: Callable[[Random], tuple[tuple[Entry, ...], tuple[str, ...]]]
    """Generates the folder's entries, and the command's arguments if they are the input."""
    check: Callable[[Case, Random, Shell], None]
    """Runs commands in that folder; raises AssertionError for a misbehaviour."""


KINDS: Final = {
    "spec": Kind(50, texts.make_spec, texts.check_spec),
    "config": Kind(12, texts.make_config, texts.check_config),
    "stack file": Kind(10, texts.make_stack, texts.check_stack),
    "stack outputs": Kind(4, texts.make_outputs, texts.check_outputs),
    "tree": Kind(8, trees.make_tree, trees.check_tree),
    "arguments": Kind(6, arguments.make_arguments, arguments.check_arguments),
    "folders": Kind(4, comparisons.make_folders, comparisons.check_folders),
    "preview": Kind(8, comparisons.make_preview, comparisons.check_preview),
    "results": Kind(6, comparisons.make_results, comparisons.check_results),
    "log": Kind(4, logs.make_log, logs.check_log),
}
"""Kinds by name."""


def make(seed: int, number: int, only: str | None = None) -> Case:
    """Return the input with this number, which depends only on the arguments."""
    rng = Random(f"{seed} {number}")  # noqa: S311 - not for cryptography
    kind = only or rng.choices(list(KINDS), [kind.share for kind in KINDS.values()])[0]
    entries, arguments = KINDS[kind].make(rng)
    return Case(kind, rng.getrandbits(32), entries, arguments)


def check(case: Case, shell: Shell) -> None:
    """Run the input, which is in the current folder.

    Raises:
        AssertionError: The command misbehaved.
    """
    KINDS[case.kind].check(case, Random(case.seed), shell)  # noqa: S311 - not for cryptography
