"""Recognition of credentials by form and by name, and redaction of reports that are published.

The patterns are texts, which `re` compiles when they are first used: most commands redact nothing.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

SECRET: Final = "[secret]"  # noqa: S105 - the mark that replaces a secret
"""The mark that Pulumi prints instead of a secret value, used here as well."""
REDACTED: Final = "[redacted]"
"""The mark that replaces the name of a person in an address."""

_SERVICE_ACCOUNT_DOMAIN: Final = r"(?i)(?:^|\.)gserviceaccount\.com$"
# The lengths are bounded to keep the search linear in the length of a hostile text.
_ADDRESS: Final = (
    r"(?i)(?P<kind>\b(?:group|domain|serviceAccount|user)(?::|%3A))?"
    r"(?P<local>[A-Z0-9][A-Z0-9._+\-]{0,63})(?P<at>@|%40)(?P<domain>[A-Z0-9\-]{1,63}(?:\.[A-Z0-9\-]{1,63})+)"
)
_TOKENS: Final = (
    r"ya29\.[\w.-]{10,}",  # Google's access tokens
    r"\bAIza[\w-]{35}",  # and its API keys
    r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}",
    r"\bpul-[0-9a-f]{40}",
    r"\bhf_[A-Za-z0-9]{30,}|\bsk-[\w-]{20,}|\bAKIA[0-9A-Z]{16}\b|\bxox[abps]-[\w-]{10,}",
    r"\beyJ[\w-]{10,1000}\.eyJ[\w-]{10,9000}\.[\w-]{10,}",  # signed tokens: https://www.rfc-editor.org/rfc/rfc7519
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    # https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    r"(?<=https://hooks\.slack\.com/)(?:services|triggers|workflows)/[\w/]{8,}",
    # https://name:password@host, and a token as the name
    r"(?<=//)(?:[^/\s:@]{0,200}:[^/\s@]{1,200}|[^/\s:@]{20,200})(?=@)",
    r"(?i)(?<=\bBearer )[\w.~+/=-]{16,}",
)
"""The tokens and keys of common services, by their published prefixes and forms."""
_QUOTED: Final = r"\"[^\"\n]*\"|'[^'\n]*'"
_ASSIGNMENT: Final = (
    rf"(?<![A-Za-z0-9_.-])(?:(?P<name>-{{0,2}}[A-Za-z_][A-Za-z0-9_.-]*)=(?P<value>{_QUOTED}|[^\s\"'&;,)]+)"
    rf"|(?P<flag>--[A-Za-z][A-Za-z0-9_.-]*) +(?P<word>{_QUOTED}|[^\s\"'-][^\s\"']*))"
)
"""`NAME=value`, `--name=value` or `--name value` in a command, a script or the parameters of an address."""
_SOURCE_LINE: Final = r"(?m)^ *[0-9]+ \| .*$"
_SOURCE_NAME: Final = r"(?<![A-Za-z0-9_.-])(?P<name>[A-Za-z_-][A-Za-z0-9_.-]*)[\"']? *: *(?=[^\s])"
_MAX_VALUE: Final = 500
"""Characters of a quoted line's value that are read, to keep the search linear; a longer secret is hidden unread."""

_SECRET_WORDS: Final = (
    *(
        "key",
        "token",
        "secret",
        "password",
        "passwd",
        "pwd",
        "pass",
        "passphrase",
        "credential",
        "creds",
        "dsn",
        "pat",
    ),
    *("keys", "tokens", "secrets", "passwords", "credentials"),
)
_MIN_RANDOM: Final = 10
"""The least characters of a generated value: shorter ones cannot be distinguished from words such as `f8e4m3fn`."""
_SEPARATORS: Final = r"[-_./:,=|<>()\[\]{}\"'\\\s]+"
_KINDS: Final = r"[A-Za-z]+|[0-9]+|[^A-Za-z0-9]+"
_MAX_KINDS: Final = 3
"""Names such as `Qwen2MoeForCausalLM` have as many groups of letters and digits."""
_ALL_KINDS: Final = r"(?=.*[A-Za-z])(?=.*[0-9])(?=.*[^A-Za-z0-9])"
_WORDS: Final = r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]"
_MIN_WORD: Final = 3
"""The least characters of the words of a name, on average."""
_UUID: Final = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_REFERENCE: Final = r"\$?\$(?:\{[A-Za-z_][A-Za-z0-9_.]*\}|\([A-Za-z_][A-Za-z0-9_.]*\))"
"""`${bucket}`, `$(NAME)` or `$$(NAME)`: a value that is filled in elsewhere."""


def has_secret_name(name: str) -> bool:
    """Return True if a word of a name is that of a credential: `WANDB_API_KEY`, `apiKey`, `PGPASSWORD`."""
    return any(
        word.rstrip("0123456789").endswith(_SECRET_WORDS)
        for word in re.split("[-_.]", name.lower())
    )


def is_random(text: str) -> bool:
    """Return True if a part of a text looks generated, in contrast to words, numbers, paths, versions and references.

    Its letters, digits and symbols change more often than in names: `q8Zr2LxV0n`, but not `llama3.1-8b-instruct`.
    """
    text = text.strip()
    if (
        len(text) < _MIN_RANDOM
        or "${" in text
        or "://" in text
        or text.startswith(("/", "./", "../", "~/"))
    ):
        return False
    if re.fullmatch(_UUID, text):
        return True
    return any(map(_is_random_part, re.split(_SEPARATORS, text.partition("sha256:")[0])))


def _is_random_part(part: str) -> bool:
    if len(part) < _MIN_RANDOM:
        return False
    if len(re.findall(_KINDS, part)) > _MAX_KINDS or re.match(_ALL_KINDS, part):
        return True
    return _MIN_WORD * len(re.findall(_WORDS, part)) > len(part)


def _is_hidden(name: str, text: str) -> bool:
    """Return True if a report shows no text with this name: under a credential's name, rather too much is hidden.

    References and paths are shown. So are commands and the number of `max_tokens`, except under a password's name.
    """
    text = text.strip()
    if not has_secret_name(name) or not text or re.fullmatch(_REFERENCE, text):
        return False
    is_plain = name.lower() == "key" or "/" in text
    if "pass" not in name.lower():
        is_plain = is_plain or re.search(r"^[-+0-9.e]{1,20}$|\s", text) is not None
    return not is_plain or is_random(text)


def redact(text: str) -> str:
    """Return a text without tokens and people's addresses; those of groups and service accounts are kept."""
    for token in _TOKENS:
        text = re.sub(token, SECRET, text)
    if "=" in text or "--" in text:
        text = re.sub(_ASSIGNMENT, _redact_assignment, text)
    return re.sub(_ADDRESS, _redact_person, text) if "@" in text or "%40" in text else text


def has_token(text: str) -> bool:
    """Return True if a text contains a token, a key or a password by its form; a reference to one is none."""
    return any("$" not in match[0] for token in _TOKENS for match in re.finditer(token, text))


def redact_report(text: str) -> str:
    """Return a findings report whose quoted lines show no value of a secret name."""
    return redact(re.sub(_SOURCE_LINE, lambda line: redact_row(line[0]), text))


def redact_value(value: Any) -> Any:
    """Return plain data with every key and every text redacted."""
    return _redact_tree(value, "")


def redact_field(names: Sequence[str], value: Any) -> Any:
    """Return a value redacted, given the keys that lead to it: any text under a name such as `api_key` is a secret."""
    return _redact_tree(value, next(filter(has_secret_name, reversed(names)), ""))


def _redact_tree(value: Any, secret_name: str) -> Any:
    """Return plain data redacted; `secret_name` is empty unless it is below a secret name."""
    if isinstance(value, dict):
        own_name = value.get("name") if value.keys() == {"name", "value"} else None
        names = {
            key: own_name if key == "value" and isinstance(own_name, str) else key for key in value
        }
        return {
            redact(key): _redact_tree(value[key], name if has_secret_name(name) else secret_name)
            for key, name in names.items()
        }
    if isinstance(value, list):
        return [_redact_tree(item, secret_name) for item in value]
    if not isinstance(value, str):
        return value
    return SECRET if secret_name and _is_hidden(secret_name, value) else redact(value)


def _redact_assignment(match: "re.Match[str]") -> str:
    value = match["value"] or match["word"]
    inner = value.strip("\"'")
    return (
        match[0].replace(inner, SECRET)
        if _is_hidden(match["name"] or match["flag"], inner)
        else match[0]
    )


def redact_row(line: str) -> str:
    """Return a line of YAML without its end, from the value of the first secret name on."""
    names = (name for name in re.finditer(_SOURCE_NAME, line) if has_secret_name(name["name"]))
    for name in names:
        # In a flow mapping, further keys follow the value.
        value = re.split(r"[,}\]]| #", line[name.end() : name.end() + _MAX_VALUE + 1], maxsplit=1)[
            0
        ]
        if len(value) > _MAX_VALUE or _is_hidden(name["name"], value.strip("\"' ")):
            return line[: name.end()] + SECRET
    return line


def _redact_person(match: "re.Match[str]") -> str:
    kind = (match["kind"] or "").lower()
    if kind.startswith(("group", "domain", "serviceaccount")) or re.search(
        _SERVICE_ACCOUNT_DOMAIN, match["domain"]
    ):
        return match[0]
    return f"{match['kind'] or ''}{REDACTED}{match['at']}{match['domain']}"
