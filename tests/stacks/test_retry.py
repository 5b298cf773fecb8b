"""Which refusals are waited for, and for how long."""

import asyncio

import pytest

import retry


def test_waits_double_and_end_after_five_minutes() -> None:
    """5 seconds, then twice as long each time; all waits together are 300 seconds, and then it is over."""
    waits = [retry.wait_before(number) for number in range(1, 9)]

    assert waits == [5, 10, 20, 40, 80, 145, None, None]
    assert sum(wait or 0 for wait in waits) == 300


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        ("googleapi: Error 400: Service account service-1@cloud-tpu.iam.gserviceaccount.com does not exist.", True),
        ("googleapi: Error 403: Cloud TPU API has not been used in project 1 before or it is disabled.", True),
        ("googleapi: Error 409: There were concurrent policy changes. Please retry the whole read-modify-write.", True),
        ("googleapi: Error 409: Service account it already exists within project projects/acme-dev.", False),
        ("googleapi: Error 403: Permission denied.\nDetails:\n  reason: SERVICE_DISABLED", True),
        ("googleapi: Error 400: Identity Pool does not exist (acme-dev.svc.id.goog).", False),
        ("googleapi: Error 403: Policy update access denied., forbidden", False),
        ("googleapi: Error 404: The specified bucket does not exist., notFound", False),
        ("googleapi: Error 409: The requested bucket name is not available., conflict", False),
    ],
)
def test_only_what_passes_by_itself_is_waited_for(error: str, passes: bool) -> None:
    """A fresh account and a fresh API pass; a missing pool, a missing permission and a taken name do not."""
    assert retry.passes(error) is passes


def test_no_more_waiting_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last wait the answer is no, without another wait."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(retry, "sleep", sleep)

    assert asyncio.run(retry.waited(1))
    assert not asyncio.run(retry.waited(7))
    assert slept == [5]
