"""Transient errors of Google's APIs, and the waits between attempts."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

FIRST_WAIT_SECONDS: Final = 5.0
"""Wait before the second attempt; each further wait is twice as long."""
MAX_WAIT_SECONDS: Final = 300.0
"""Limit for all waits together: Google asks for a few minutes after an API is enabled or an account created."""

UNKNOWN_ACCOUNT: Final = re.compile(r"Error 400\b.*Service account \S+ does not exist", re.DOTALL)
"""A new service agent or account that IAM does not see yet:
https://github.com/hashicorp/terraform-provider-google/issues/21931."""
UNUSABLE_API: Final = re.compile(
    r"Error 403\b.*(has not been used in project|accessNotConfigured|SERVICE_DISABLED)", re.DOTALL
)
"""An enabled API that is not usable yet: https://github.com/hashicorp/terraform-provider-google/issues/8214."""
_TRANSIENT: Final = (
    UNKNOWN_ACCOUNT,
    UNUSABLE_API,
    # A concurrent change of the same policy that outlasts the provider's own retries of half a minute:
    # https://github.com/hashicorp/terraform-provider-google/issues/12512
    re.compile(r"Error 409\b.*concurrent policy changes", re.DOTALL),
)

Sleep = Callable[[float], Awaitable[None]]

# A module variable, so that tests replace it without patching asyncio for the whole process.
sleep: Sleep = asyncio.sleep


def is_transient(message: str) -> bool:
    """Return True if the call may succeed a little later."""
    return any(pattern.search(message) for pattern in _TRANSIENT)


def wait_before(retry: int) -> float | None:
    """Return the seconds to wait before a retry, counted from 1; None once the limit is reached."""
    waited = FIRST_WAIT_SECONDS * (2 ** (retry - 1) - 1)
    return (
        min(FIRST_WAIT_SECONDS * 2 ** (retry - 1), MAX_WAIT_SECONDS - waited)
        if waited < MAX_WAIT_SECONDS
        else None
    )


async def wait_after(failures: int) -> bool:
    """Wait after this number of failures of one call; return False without waiting once the limit is reached."""
    seconds = wait_before(failures)
    if seconds is None:
        return False
    await sleep(seconds)
    return True
