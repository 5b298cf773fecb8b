"""Redaction of people's e-mail addresses, tokens, keys and passwords, for reports that are published."""

import re
from typing import Any, Final

SECRET: Final = "[secret]"  # noqa: S105 - the mark that replaces a secret
"""The mark that Pulumi prints instead of a secret value, used here as well."""

_SERVICE_ACCOUNT_DOMAIN: Final = re.compile(r"(?:^|\.)gserviceaccount\.com$")
# The lengths are bounded to keep the search linear in the length of a hostile text.
_ADDRESS: Final = re.compile(
    r"(?P<kind>\b(?:group|domain|serviceAccount|user)(?::|%3A))?"
    r"(?P<local>[A-Za-z0-9][A-Za-z0-9._+\-]{0,63})(?P<at>@|%40)(?P<domain>[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63})+)",
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
"""The tokens and keys of common services, by their published prefixes and forms."""
_CREDENTIALS: Final = r"(?:api[_-]?key|token|secret|password|passwd|credentials?|private[_-]?key)"
_SECRET_NAME: Final = re.compile(rf"(?:^|[_\-.]){_CREDENTIALS}$", re.IGNORECASE)
_SOURCE_LINE: Final = re.compile(rf"(?im)^( *\d+ \| .*?{_CREDENTIALS}[\"']? *: *)\S.*$")
"""A source line, as findings quote it, that assigns a value to a secret name."""


def redact(text: str) -> str:
    """Return a text without tokens and people's addresses; those of groups and service accounts are kept."""
    for token in _TOKENS:
        text = token.sub(SECRET, text)
    return _ADDRESS.sub(_redact_person, text) if "@" in text or "%40" in text else text


def redact_report(text: str) -> str:
    """Return a findings report whose quoted lines show no value of a secret name."""
    return redact(_SOURCE_LINE.sub(rf"\1{SECRET}", text))


def redact_value(value: Any) -> Any:
    """Return plain data with every key and every text redacted."""
    if isinstance(value, dict):
        return {redact(key): redact_field(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def redact_field(key: str, value: Any) -> Any:
    """Return a value redacted; any text under a name such as `api_key` is a secret."""
    return SECRET if isinstance(value, str) and value and _SECRET_NAME.search(key) else redact_value(value)


def _redact_person(match: "re.Match[str]") -> str:
    kind = (match["kind"] or "").lower()
    if kind.startswith(("group", "domain", "serviceaccount")) or _SERVICE_ACCOUNT_DOMAIN.search(match["domain"]):
        return match[0]
    return f"{match['kind'] or ''}[redacted]{match['at']}{match['domain']}"
