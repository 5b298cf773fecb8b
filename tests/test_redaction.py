"""Redaction of e-mail addresses, tokens, keys and passwords."""

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
def test_addresses_and_tokens_are_redacted(text: str, expected: str) -> None:
    """People and tokens are redacted; groups, service accounts and images stay, as a reviewer needs them."""
    assert redact(text) == expected


@given(st.text() | st.from_regex(r"(user:|//)?[a-z:@.%40]{0,40}", fullmatch=True))
def test_redaction_is_idempotent(text: str) -> None:
    """Redacting a redacted text changes nothing."""
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("key", ["WANDB_API_KEY", "password", "client_secret", "HF_TOKEN", "--api-key", "credentials"])
def test_a_value_with_a_secret_name_is_redacted(key: str) -> None:
    """A text under a secret name is redacted before and after a change, at any depth."""
    change = redact_change(Change(("env", key), "hunter2", ABSENT))
    assert change == Change(("env", key), "[secret]", ABSENT)
    assert redact_change(Change(("env",), ABSENT, [{key: "hunter2"}])).after == [{key: "[secret]"}]


def test_similar_names_are_not_secret() -> None:
    """A number of tokens, the name of a KMS key and an empty value stay."""
    for key, value in (("max_tokens", "512"), ("kmsKeyName", "k"), ("token", ""), ("tokenizer", "bpe"), ("token", 7)):
        assert redact_change(Change((key,), ABSENT, value)).after == value


def test_paths_are_redacted() -> None:
    """A person in a key of a path is redacted."""
    assert redact_change(Change(("members", "user:ada@example.com"), 1, 2)).path == (
        "members",
        "user:[redacted]@example.com",
    )
