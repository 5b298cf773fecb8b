"""What a comment must not show although it was read: people's addresses, and whatever opens a door."""

import re
from typing import Any, Final

SECRET: Final = "[secret]"  # noqa: S105 - what stands in the place of one
"""What Pulumi itself prints in place of a secret value; ours look the same."""

_SERVICE: Final = re.compile(r"(?:^|\.)gserviceaccount\.com$")
_ADDRESS: Final = re.compile(
    r"(?P<kind>\b(?:group|domain|serviceAccount|user)(?::|%3A))?"
    r"(?P<who>[A-Za-z0-9][A-Za-z0-9._+\-]{0,63})(?P<at>@|%40)(?P<where>[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63})+)",
    re.IGNORECASE,
)
_TOKENS: Final = (
    re.compile(r"ya29\.[\w.-]{10,}"),  # Google's access tokens
    re.compile(r"\bAIza[\w-]{35}"),  # and its API keys
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}"),
    re.compile(r"\bpul-[0-9a-f]{40}"),
    re.compile(r"\bhf_[A-Za-z0-9]{30,}|\bsk-[\w-]{20,}|\bAKIA[0-9A-Z]{16}\b|\bxox[abps]-[\w-]{10,}"),
    re.compile(
        r"\beyJ[\w-]{10,1000}\.eyJ[\w-]{10,9000}\.[\w-]{10,}"
    ),  # signed tokens: https://www.rfc-editor.org/rfc/rfc7519
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(r"(?<=//)[^/\s:@]{1,200}:[^/\s@]{1,200}(?=@)"),  # https://name:password@host
    re.compile(r"(?<=\bBearer )[\w.~+/=-]{16,}", re.IGNORECASE),
)
"""What services give out, by the form in which they give it out."""
_NAMES: Final = r"(?:api[_-]?key|token|secret|password|passwd|credentials?|private[_-]?key)"
_NAMED: Final = re.compile(rf"(?:^|[_\-.]){_NAMES}$", re.IGNORECASE)
_SOURCE: Final = re.compile(rf"(?im)^( *\d+ \| .*?{_NAMES}[\"']? *: *)\S.*$")
"""A line of a file, as findings show it, with such a name in it."""


def redact(text: str) -> str:
    """A text without people's names in addresses and without tokens; a group's or an account's address stays."""
    for token in _TOKENS:
        text = token.sub(SECRET, text)
    return _ADDRESS.sub(_person, text) if "@" in text or "%40" in text else text


def redact_report(text: str) -> str:
    """Findings as text, whose lines of the file may hold what stands under such a name."""
    return redact(_SOURCE.sub(rf"\1{SECRET}", text))


def redact_value(value: Any) -> Any:
    """Plain data likewise, keys and all."""
    if isinstance(value, dict):
        return {redact(key): redact_field(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def redact_field(key: str, value: Any) -> Any:
    """A text under a name like `api_key` is a secret, whatever it looks like."""
    return SECRET if isinstance(value, str) and value and _NAMED.search(key) else redact_value(value)


def _person(match: "re.Match[str]") -> str:
    kind = (match["kind"] or "").lower()
    if kind.startswith(("group", "domain", "serviceaccount")) or _SERVICE.search(match["where"]):
        return match[0]
    return f"{match['kind'] or ''}[redacted]{match['at']}{match['where']}"
