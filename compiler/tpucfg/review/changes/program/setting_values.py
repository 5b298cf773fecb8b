"""Values of settings as text, without secrets and addresses of people."""

import json
from typing import Any, Final

from tpucfg.redaction import redact_field

_UNSET: Final = "none"


def shown_value(key: str, value: Any) -> str:
    """Return a value as text; a secret or an address is replaced.

    Args:
        key: the name under which the value is written, which may mark it as secret.
        value: plain data; None if there is none.
    """
    if value is None:
        return _UNSET
    shown = redact_field((key.rpartition(":")[2].rpartition(".")[2],), value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
