"""Random arguments of the command line."""

from random import Random
from typing import Final

from fuzz import corpus
from fuzz.cases import Case, Entry
from fuzz.mutations import HOSTILE, PLAUSIBLE, TEXTS
from fuzz.shell import Shell
from tpucfg.cli.app import COMMANDS

_OPTIONS: Final = (
    *(
        "--spec",
        "--env",
        "--size",
        "--target",
        "--run",
        "--format",
        "--config",
        "--region",
        "--out",
        "--check",
    ),
    *("--prune", "--stack-outputs", "--help", "--execute", "--base", "--preview"),
)
_VALID: Final = (
    *(
        "dev",
        "prod",
        "v2-8",
        "vertex-ai",
        "json",
        "text",
        "batch_size",
        "TPU021",
        "tpucfg.yaml",
        "workerPoolSpecs.0",
    ),
    *("yaml", "markdown", "sarif", "github", "a1", "us-central1", "tpucfg"),
)
_UNTESTED: Final = ("init", "infra")
"""Commands with their own tests: `init` writes many files, and `infra` imports Pulumi, which is slow."""


def make_arguments(rng: Random) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Return a command with valid and invalid options and arguments."""
    command = rng.choice([name for name in COMMANDS if name not in _UNTESTED])
    words = [rng.choice([command] * 9 + list(HOSTILE))]
    for _ in range(rng.choice([0, 1, 2, 4])):
        word = rng.choice([*_VALID, rng.choice(_VALID), rng.choice([*HOSTILE, *PLAUSIBLE, *TEXTS])])
        words += rng.choice(
            [[rng.choice(_OPTIONS), word], [word], [f"{rng.choice(_OPTIONS)}={word}"]]
        )
    words = [
        word.replace("\0", "") for word in words if word != "--execute"
    ]  # an argument cannot contain NUL
    return (Entry("tpucfg.yaml", "file", rng.choice(corpus.valid_specs())),), tuple(words)


def check_arguments(case: Case, _: Random, tpucfg: Shell) -> None:
    """Check that the command succeeds, or fails with an error or a usage message."""
    tpucfg(*case.words)
