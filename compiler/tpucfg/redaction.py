"""Redaction of people's e-mail addresses, tokens, keys and passwords, for reports that are published."""

import re
from collections.abc import Sequence
from typing import Any, Final

from tpucfg.secret_names import is_fact_about_secret, is_secret, is_secret_name

SECRET: Final = "[secret]"  # noqa: S105 - the mark that replaces a secret
"""The mark that Pulumi prints instead of a secret value, used here as well."""
REDACTED: Final = "[redacted]"
"""The mark that replaces the name of a person in an address."""

_PAIR: Final = {"name", "value"}
"""The keys of an item of a container's environment."""
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
    # https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    re.compile(r"(?<=https://hooks\.slack\.com/)(?:services|triggers|workflows)/[\w/]{8,}"),
    # https://name:password@host, and a token as the name
    re.compile(r"(?<=//)(?:[^/\s:@]{0,200}:[^/\s@]{1,200}|[^/\s:@]{20,200})(?=@)"),
    re.compile(r"(?<=\bBearer )[\w.~+/=-]{16,}", re.IGNORECASE),
)
"""The tokens and keys of common services, by their published prefixes and forms."""
_QUOTED: Final = r"\"[^\"\n]*\"|'[^'\n]*'"
_ASSIGNMENT: Final = re.compile(
    rf"(?<![A-Za-z0-9_.-])(?:(?P<name>-{{0,2}}[A-Za-z_][A-Za-z0-9_.-]*)=(?P<value>{_QUOTED}|[^\s\"'&;,)]+)"
    rf"|(?P<flag>--[A-Za-z][A-Za-z0-9_.-]*) +(?P<word>{_QUOTED}|[^\s\"'-][^\s\"']*))"
)
"""`NAME=value`, `--name=value` or `--name value` in a command, a script or the parameters of an address."""
_SOURCE_LINE: Final = re.compile(r"^ *[0-9]+ \| .*$", re.MULTILINE)
_SOURCE_NAME: Final = re.compile(r"(?<![A-Za-z0-9_.-])(?P<name>[A-Za-z_-][A-Za-z0-9_.-]*)[\"']? *: *(?=[^\s])")


def redact(text: str) -> str:
    """Return a text without tokens and people's addresses; those of groups and service accounts are kept."""
    for token in _TOKENS:
        text = token.sub(SECRET, text)
    if "=" in text or "--" in text:
        text = _ASSIGNMENT.sub(_redact_assignment, text)
    return _ADDRESS.sub(_redact_person, text) if "@" in text or "%40" in text else text


def has_token(text: str) -> bool:
    """Return True if a text contains a token, a key or a password by its form; a reference to one is none."""
    return any("$" not in match[0] for token in _TOKENS for match in token.finditer(text))


def redact_report(text: str) -> str:
    """Return a findings report whose quoted lines show no value of a secret name."""
    return redact(_SOURCE_LINE.sub(_redact_source_line, text))


def redact_value(value: Any) -> Any:
    """Return plain data with every key and every text redacted."""
    return _redact_tree(value, "")


def redact_field(names: Sequence[str], value: Any) -> Any:
    """Return a value redacted, given the keys that lead to it: any text under a name such as `api_key` is a secret."""
    secret_name = ""
    for name in names:
        secret_name = _secret_name(secret_name, name)
    return _redact_tree(value, secret_name)


def _secret_name(outer: str, name: str) -> str:
    """Return the name that makes the value of a key secret, its own or that of a mapping around it, if there is one."""
    return name if is_secret_name(name) else outer if outer and not is_fact_about_secret(name) else ""


def _redact_tree(value: Any, secret_name: str) -> Any:
    """Return plain data redacted; `secret_name` is empty unless it is below a secret name."""
    if isinstance(value, dict):
        own_name = value.get("name")
        pair_name = own_name if value.keys() == _PAIR and isinstance(own_name, str) else ""
        return {
            redact(key): _redact_tree(
                item, _secret_name(secret_name, pair_name if key == "value" and pair_name else key)
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_redact_tree(item, secret_name) for item in value]
    if not isinstance(value, str):
        return value
    return SECRET if secret_name and is_secret(secret_name, value) else redact(value)


def _redact_assignment(match: "re.Match[str]") -> str:
    value = match["value"] or match["word"]
    inner = value.strip("\"'")
    return match[0].replace(inner, SECRET) if is_secret(match["name"] or match["flag"], inner) else match[0]


def _redact_source_line(match: "re.Match[str]") -> str:
    """Return a quoted line without its end, from the value of the first secret name on."""
    line = match[0]
    for name in _SOURCE_NAME.finditer(line):
        # In a flow mapping, further keys follow the value.
        value = re.split(r"[,}\]]| #", line[name.end() :], maxsplit=1)[0]
        if is_secret(name["name"], value.strip("\"' ")):
            return line[: name.end()] + SECRET
    return line


def _redact_person(match: "re.Match[str]") -> str:
    kind = (match["kind"] or "").lower()
    if kind.startswith(("group", "domain", "serviceaccount")) or _SERVICE_ACCOUNT_DOMAIN.search(match["domain"]):
        return match[0]
    return f"{match['kind'] or ''}{REDACTED}{match['at']}{match['domain']}"
