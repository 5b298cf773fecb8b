"""Transient errors, and the waits between attempts."""

import asyncio

import pytest

from tpucfg.stack import retry


def test_waits_double_up_to_five_minutes() -> None:
    """The first wait is 5 seconds, each further one twice as long, and all together 300 seconds."""
    waits = [retry.wait_before(retry_number) for retry_number in range(1, 9)]

    assert waits == [5, 10, 20, 40, 80, 145, None, None]
    assert sum(wait or 0 for wait in waits) == 300


@pytest.mark.parametrize(
    ("message", "transient"),
    [
        (
            "googleapi: Error 400: Service account service-1@cloud-tpu.iam.gserviceaccount.com does not exist.",
            True,
        ),
        (
            "googleapi: Error 403: Cloud TPU API has not been used in project 1 before or it is disabled.",
            True,
        ),
        (
            "googleapi: Error 409: There were concurrent policy changes. Please retry the whole read-modify-write.",
            True,
        ),
        (
            "googleapi: Error 409: Service account name already exists within project projects/acme-dev.",
            False,
        ),
        ("googleapi: Error 403: Permission denied.\nDetails:\n  reason: SERVICE_DISABLED", True),
        ("googleapi: Error 400: Identity Pool does not exist (acme-dev.svc.id.goog).", False),
        ("googleapi: Error 403: Policy update access denied., forbidden", False),
        ("googleapi: Error 404: The specified bucket does not exist., notFound", False),
        ("googleapi: Error 409: The requested bucket name is not available., conflict", False),
    ],
)
def test_only_errors_of_a_new_account_or_api_are_transient(message: str, transient: bool) -> None:
    """A new account, a new API and a concurrent change are transient; a missing permission or a taken name is not."""
    assert retry.is_transient(message) is transient


def test_no_wait_after_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last wait, the result is False without another wait."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(retry, "sleep", sleep)

    assert asyncio.run(retry.wait_after(1))
    assert not asyncio.run(retry.wait_after(7))
    assert slept == [5]
