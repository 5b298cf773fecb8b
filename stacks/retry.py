"""Which refusals of Google pass by themselves, and how long they are waited for."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Final

FIRST_WAIT: Final = 5.0
"""Seconds before the second try; each further wait is twice as long."""
LONGEST: Final = 300.0
"""Seconds of waiting in all: Google asks for a few minutes after an API was enabled or an account made."""

_PASSING: Final = (
    # A fresh agent or account that IAM does not see yet: https://github.com/hashicorp/terraform-provider-google/issues/21931
    re.compile(r"Error 400\b.*Service account \S+ does not exist", re.DOTALL),
    # Somebody else changed the same policy meanwhile, and the provider's own half minute was not enough:
    # https://github.com/hashicorp/terraform-provider-google/issues/12512
    re.compile(r"Error 409\b.*concurrent policy changes", re.DOTALL),
    # An API that was enabled and is not usable yet: https://github.com/hashicorp/terraform-provider-google/issues/8214
    re.compile(r"Error 403\b.*(has not been used in project|accessNotConfigured|SERVICE_DISABLED)", re.DOTALL),
)

Sleep = Callable[[float], Awaitable[None]]

sleep: Sleep = asyncio.sleep
"""How time passes; a test puts something quicker here."""


def passes(error: str) -> bool:
    """Whether the same call may succeed a little later."""
    return any(pattern.search(error) for pattern in _PASSING)


def wait_before(retry: int) -> float | None:
    """Seconds before this retry, counted from 1; None where the waiting has been long enough."""
    waited = FIRST_WAIT * (2 ** (retry - 1) - 1)
    return min(FIRST_WAIT * 2 ** (retry - 1), LONGEST - waited) if waited < LONGEST else None


async def waited(failures: int) -> bool:
    """Waits after that many failures of one call, if there is any waiting left."""
    seconds = wait_before(failures)
    if seconds is None:
        return False
    await sleep(seconds)
    return True
