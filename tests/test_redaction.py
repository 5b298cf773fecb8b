"""What no comment shows: people's addresses and what opens a door."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.diff.change import ABSENT, Change, redact_change
from tpucfg.redaction import redact

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhY21lIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user:ada@example.com", "user:[redacted]@example.com"),
        ("USER:Ada.L+x@Example.com", "USER:[redacted]@Example.com"),
        ("user:ada@example.com-on-data-us-central1", "user:[redacted]@example.com-on-data-us-central1"),
        ("user%3Aada%40example.com", "user%3A[redacted]%40example.com"),
        ("deleted:user:ada@example.com?uid=1", "deleted:user:[redacted]@example.com?uid=1"),
        (
            "ada@example.com does not have storage.buckets.create",
            "[redacted]@example.com does not have storage.buckets.create",
        ),
        ("group:team@example.com", "group:team@example.com"),
        ("serviceAccount:tpu@acme.iam.gserviceaccount.com", "serviceAccount:tpu@acme.iam.gserviceaccount.com"),
        ("tpu@acme.iam.gserviceaccount.com", "tpu@acme.iam.gserviceaccount.com"),
        ("us-docker.pkg.dev/a/b@sha256:0123", "us-docker.pkg.dev/a/b@sha256:0123"),
        ("--token ya29.a0AfH6SMBx_y-z.more", "--token [secret]"),
        ("AIza" + "x" * 35, "[secret]"),
        ("ghp_" + "a" * 36, "[secret]"),
        ("github_pat_" + "a" * 36, "[secret]"),
        ("glpat-" + "a" * 20, "[secret]"),
        ("pul-" + "a" * 40, "[secret]"),
        ("hf_" + "a" * 34, "[secret]"),
        ("AKIA" + "A" * 16, "[secret]"),
        (f"Authorization: Bearer {JWT}", "Authorization: Bearer [secret]"),
        ("https://me:hunter2@example.com/x", "https://[secret]@example.com/x"),
        ("-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\nrest", "[secret]\nrest"),
        ("-----BEGIN RSA PRIVATE KEY-----\ncut off", "[secret]"),
        ("nothing @team of #123", "nothing @team of #123"),
    ],
)
def test_text(text: str, expected: str) -> None:
    """People and tokens go; groups, accounts and images stay, as a reviewer needs them."""
    assert redact(text) == expected


@given(st.text() | st.from_regex(r"(user:|//)?[a-z:@.%40]{0,40}", fullmatch=True))
def test_once_is_enough(text: str) -> None:
    """What is redacted has nothing left to redact."""
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("key", ["WANDB_API_KEY", "password", "client_secret", "HF_TOKEN", "--api-key", "credentials"])
def test_value_that_is_named_as_a_secret(key: str) -> None:
    """A text under such a name is shown on neither side, at whatever depth."""
    change = redact_change(Change(("env", key), "hunter2", ABSENT))
    assert change == Change(("env", key), "[secret]", ABSENT)
    assert redact_change(Change(("env",), ABSENT, [{key: "hunter2"}])).after == [{key: "[secret]"}]


def test_names_that_only_sound_like_one() -> None:
    """A number of tokens, a key of an encoding and an empty value are none."""
    for key, value in (("max_tokens", "512"), ("kmsKeyName", "k"), ("token", ""), ("tokenizer", "bpe"), ("token", 7)):
        assert redact_change(Change((key,), ABSENT, value)).after == value


def test_paths_are_redacted_too() -> None:
    """A person may be a key."""
    assert redact_change(Change(("members", "user:ada@example.com"), 1, 2)).path == (
        "members",
        "user:[redacted]@example.com",
    )
