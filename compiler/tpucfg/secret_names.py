"""Names of credentials, such as `AWS_SECRET_ACCESS_KEY`, distinguished from similar ones by words: `max_tokens`.

The words are data. A name is secret if it contains a credential's word, unless the word before it makes it something
else (`partition_key`), or a word behind it makes it a fact about the credential (`TOKEN_FILE`).
"""

import re
from collections.abc import Sequence
from typing import Final

from tpucfg.named_tuple import NamedTuple


class _Exceptions(NamedTuple):
    """Neighbors that turn a credential's word into another thing."""

    before: frozenset[str] = frozenset()
    """Words directly before it."""
    behind: frozenset[str] = frozenset()
    """Words anywhere behind it."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""A word of `apiKey`, `API_KEY` or `api-key`; digits separate words too."""
_FACTS: Final = _words(
    "algorithm alg arn backend bucket class cmd column command count days dir directory endpoint expiration expiry"
    " field file filename folder header hours id ids kind length len limit location manager minutes mount name names"
    " namespace path period policy prefix project provider ref refs region ring rotation seconds selector size"
    " source store suffix sync timeout ttl type uri url usage vault version versions volume"
)
"""Words behind a credential's word that make the name a fact about it, such as where it is kept."""
_NOT_A_KEY: Final = _words(
    "annotation answer arrow attention batch cache cluster clustering column composite config crypto data dataset dedup"
    " dict event example feature field foreign group hash hot idempotency image index input json kms label left"
    " lookup loss map message metadata metric monitor node object order output param partition prng primary public"
    " query random range record registry resource return right rng routing row sample search seed selector shard"
    " shortcut shuffle sort source split state step tag target taint text topic topology translation unique value"
)
"""Words before `key` in the name of a column, a field, a label, a random state or a public half."""
_NOT_A_TOKEN: Final = _Exceptions(
    before=_words(
        "added audio begin bos class cls decoder end eos extra first id image img input language last mask max min new"
        " next num output pad padding patch per prompt sep special start stop tgt think unk unknown video vision"
    ),
    behind=_words(
        "batch budget chunk chunks classification dim dimension dims dispatcher dropout embed embedding embeddings freq"
        " frequency level loss mask masking merge merging mixer mixing norm order pool pooling reduction routing scale"
        " shift vocab vocabulary weight weights window"
    ),
)
"""Words around `token` in the name of a symbol or a layer of a language model."""
_CREDENTIALS: Final = {
    **dict.fromkeys(
        _words(
            "secret secrets password passwords passwd pwd passphrase passphrases passcode credential credentials creds"
            " dsn apikey apikeys"
        ),
        _Exceptions(),
    ),
    "token": _NOT_A_TOKEN,
    "key": _Exceptions(before=_NOT_A_KEY),
}
"""The words of credentials."""
_RUN_TOGETHER: Final = (
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "accesstoken",
    "authtoken",
    "bearertoken",
    "apitoken",
    "clientsecret",
)
"""Ends of words without separators, as in `PGPASSWORD` and `authtoken`."""
_OWNERS: Final = {
    **dict.fromkeys(
        ("keys", "tokens"),
        _words("access api app auth bearer deploy encryption private refresh secret session signing"),
    ),
    "pass": _words("admin db ftp ldap login mail mongo mysql pg postgres redis root smtp sql ssh user"),
    "pat": _words("ado azure git github gitlab"),
}
"""Words that name a credential only directly behind one of these: `API_TOKENS`, but not `MAX_TOKENS`."""
_PASSWORDS: Final = _words("password passwords passwd pwd passphrase passphrases passcode pass")
_PASSWORD_ENDS: Final = ("password", "passwd", "passphrase")
"""Unlike other credentials, passwords may be numbers."""

_BOOLEAN_OR_NUMBER: Final = re.compile(
    r"true|false|yes|no|on|off|none|null|[-+]?[0-9.]{1,12}(?:e[-+]?[0-9]{1,3})?", re.IGNORECASE
)
_NUMBER_STARTS: Final = frozenset("0123456789+-.")
_REFERENCE: Final = re.compile(
    r"\$?\$(?:\{[A-Za-z_][A-Za-z0-9_.]*\}|\([A-Za-z_][A-Za-z0-9_.]*\))"
    r"|projects/[a-z][a-z0-9:.-]{0,99}/secrets/[A-Za-z0-9_-]{1,255}/versions/[a-z0-9-]{1,63}"
)
"""`${bucket}`, `$(NAME)`, `$$(NAME)` or a version in Secret Manager: a value that is filled in elsewhere."""
_STORAGE: Final = ("gs://", "s3://", "file://")
_ROOTS: Final = ("", ".", "..", "~")
_BASE64: Final = re.compile(r"[A-Za-z0-9]*[+=].*|[A-Za-z0-9]{20,}", re.DOTALL)
"""A part of a path that is rather a part of a key in Base64, which may contain slashes."""
_COMMAND: Final = re.compile(
    r"(?:^|[|;&(`/\n])[ \t]*(?:base64|bash|chmod|curl|docker|echo|env|eval|exec|export|gcloud|gsutil|kubectl|nc|node"
    r"|nohup|openssl|perl|pip3?|python3?|rm|scp|sh|ssh|sudo|wget|zsh)\s+\S"
    r"|^[ \t]*(?:\.{0,2}|~)/\S+\s+\S"
)


def is_secret_name(name: str) -> bool:
    """Return True for the name of a credential: of a variable, a flag, a field or a key."""
    return bool(_credential(name))


def is_fact_about_secret(name: str) -> bool:
    """Return True for a name that is no credential inside a mapping with a secret name: `name`, `version`, `keyRef`."""
    words = _split(name)
    return bool(words) and words[-1] in _FACTS


def is_secret(name: str, value: str) -> bool:
    """Return True if a text with this name is a credential."""
    credential = _credential(name)
    return bool(credential) and is_secret_value(value, may_be_number=credential in _PASSWORDS)


def is_secret_value(value: str, *, may_be_number: bool = True) -> bool:
    """Return True if a text with a secret name is a credential.

    Truth values, paths and references are none. A command is none either, so that a name cannot hide what runs; the
    credentials in a command are recognized by their own names.
    """
    text = value.strip()
    if not text or _REFERENCE.fullmatch(text):
        return False
    if _BOOLEAN_OR_NUMBER.fullmatch(text):
        return may_be_number and text[0] in _NUMBER_STARTS
    return not (text.startswith(_STORAGE) or _is_path(text) or _COMMAND.search(text))


def _is_path(text: str) -> bool:
    root, *parts = text.split("/")
    return bool(parts) and root in _ROOTS and not re.search(r"\s", text) and not any(map(_BASE64.fullmatch, parts))


def _credential(name: str) -> str:
    """Return the word that makes a name secret, or an empty text."""
    words = _split(name)
    behind: set[str] = set()
    # From the end, so that the words behind a word are known, and a long name takes linear time.
    for index in reversed(range(len(words))):
        word = words[index]
        if _is_credential(words, index) and _FACTS.isdisjoint(behind) and _exceptions(word).behind.isdisjoint(behind):
            return "password" if word.endswith(_PASSWORD_ENDS) else word
        behind.add(word)
    return ""


def _is_credential(words: Sequence[str], index: int) -> bool:
    word, before = words[index], words[index - 1] if index else ""
    if word in _OWNERS:
        return before in _OWNERS[word]
    if word in _CREDENTIALS:
        return before not in _exceptions(word).before and (len(words) > 1 or word != "key")  # `key` is that of any pair
    return word.endswith(_RUN_TOGETHER)


def _exceptions(word: str) -> _Exceptions:
    return _CREDENTIALS.get(word, _Exceptions())


def _split(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
