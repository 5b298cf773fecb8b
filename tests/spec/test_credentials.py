"""Credentials in a spec are errors with the line for Secret Manager, and no report shows their values."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from spec_factory import compiled, document, ids, loaded, spec
from tpucfg.cli.app import run
from tpucfg.findings import FORMATS
from tpucfg.redaction import has_secret_name, is_random
from tpucfg.spec.credentials import hidden_text
from tpucfg.yamldoc.reader import read_text

VALUE = "q7v2m9x4k1w8"
CLOUD_TPU: dict[str, Any] = {"target": "cloud-tpu"}


@pytest.mark.parametrize(
    "name",
    [
        "WANDB_API_KEY",
        "HF_TOKEN",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "PASSPHRASE",
        "AWS_CREDENTIALS",
        "SENTRY_DSN",
        "AWS_SECRET_ACCESS_KEY",
    ],
)
def test_a_name_with_a_word_of_a_credential_is_an_error(name: str) -> None:
    """In env and in args of any layer, a credential is one error, with the line that refers to a secret."""
    line = f"{name}: {name.lower().replace('_', '-')}/1"
    for path, section in (
        ("trainer__env", "trainer.secrets"),
        ("trainer__args", "trainer.secrets"),
        ("environments__dev__trainer__env", "environments.dev.trainer.secrets"),
        ("overrides__v2-32__args", "overrides.v2-32.trainer.secrets"),
        (
            "environments__dev__overrides__v2-32__trainer__args",
            "environments.dev.overrides.v2-32.trainer.secrets",
        ),
    ):
        (finding,) = compiled(spec(**CLOUD_TPU, **{path: {name: VALUE}})).findings
        assert finding.id == "TPU017"
        assert finding.help.endswith(f"replace it by {line} under {section}")
        assert VALUE not in "".join(finding.lines)


@pytest.mark.parametrize("name", ["TOKENIZERS_PARALLELISM", "TOKENIZER", "KEYBOARD", "kmsKeyName"])
def test_a_name_without_such_a_word_is_none(name: str) -> None:
    """Words that only contain a credential's word are none."""
    assert compiled(spec(trainer__env={name: VALUE})).findings == ()


@pytest.mark.parametrize(
    "value",
    [
        "", "true", "0", "12.5", "12345678901234567890", "1e-3", "disabled", "my dog", "correct horse battery staple",
        "/run/key.json", "./key", "${job_dir}/key", "gs://b/k3yQ9x2Lm7", "llama3.1-8b-instruct", "gpt2-medium",
        "gpt-4o-2024-08-06", "t5-v1_1-xxl", "Meta-Llama-3.1-8B-Instruct", "user_id_2024", "2026-11-26T10:00:00Z",
        "us-docker.pkg.dev/p/r/i:v1.2.3rc1", f"us-docker.pkg.dev/p/r/i@sha256:{'0a1b2c3d' * 8}", "v5litepod-16",
        "<|reserved_special_token_250|>", "Qwen2MoeForCausalLM", "projects/p/secrets/s/versions/1", "postgres",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["API_KEY", "PASSWORD"])
def test_words_numbers_and_paths_are_no_credentials(name: str, value: str) -> None:
    """A value that cannot be a credential is none, whatever its name."""
    findings = compiled(spec(trainer__env={name: value})).findings
    assert "TPU017" not in ids(findings)


@pytest.mark.parametrize(
    "value",
    [
        "q8Zr2LxV0nTf7YwBk3Hd", "q7v2m9x4k1w8", "0123456789abcdef0123456789abcdef01234567", "S3cr3tP4ssw0rd",
        "hunter2hunter2", "550e8400-e29b-41d4-a716-446655440000", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "x7#Kq9!vLp2$", "host=db user=u password=q7v2m9x4k1w8",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "name", ["KEY", "MY_TARGET_KEY", "STOP_TOKEN", "PGPASSWORD", "OPENAI_API_KEY2", "hf-token"]
)
def test_a_generated_value_is_a_credential(name: str, value: str) -> None:
    """Letters, digits and symbols that alternate are a credential under each name with a credential's word."""
    (finding,) = compiled(spec(**CLOUD_TPU, trainer__args={name: value})).findings
    assert finding.id == "TPU017"
    assert value not in "".join(finding.lines)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["key_", "Aa", "/a", "; ", "\n\t ", "$(", "+", "a=", "a1", "a!1"])
def test_hostile_texts_take_linear_time(part: str) -> None:
    """A megabyte is decided within seconds."""
    text = part * (1_000_000 // len(part))
    start = time.process_time()
    assert has_secret_name(text) in {True, False}
    assert is_random(text) in {True, False}
    assert time.process_time() - start < 3


def test_a_reference_is_no_credential() -> None:
    """The entries of `secrets` are names, and stay visible."""
    data = spec(target="cloud-tpu", trainer__secrets={"WANDB_API_KEY": "wandb/3"})
    assert "TPU017" not in ids(compiled(data).findings)
    assert "wandb/3" in hidden_text(document(data))


@pytest.mark.parametrize("value", ["hf_" + "a1B2c3D4" * 4, "0123456789abcdef" * 2])
def test_a_credential_in_place_of_a_secrets_name_is_an_error(value: str) -> None:
    """`trainer.secrets` takes names: a value in the form of a credential is one error, and is not shown."""
    result = compiled(spec(**CLOUD_TPU, trainer__secrets={"HF_TOKEN": value}))
    (finding,) = result.findings
    assert finding.help.endswith("replace it by HF_TOKEN: hf-token/1 under trainer.secrets")
    assert value not in "".join((*finding.lines, result.source))


def test_a_credential_can_be_allowed() -> None:
    """The names are a judgment, so `allow` turns the error into a note."""
    findings = compiled(
        spec(
            trainer__env={"API_KEY": VALUE},
            allow={"TPU017": {"path": "trainer.env.API_KEY", "reason": "a public key"}},
        )
    ).findings
    assert [(finding.id, finding.level) for finding in findings] == [("TPU017", "note")]


TEXTS = {
    "block": f"  env:\n    API_KEY: {VALUE} # comment\n",
    "flow": f"  env: {{A: '1', API_KEY: {VALUE}, B: '2'}}\n",
    "quoted": f'  env: {{"API_KEY": "{VALUE}"}}\n',
    "list": f"  args: {{api_key: [{VALUE}, {VALUE}]}}\n",
    "literal": f"  env:\n    API_KEY: |\n      {VALUE}\n      {VALUE}\n",
    "folded": f"  env:\n    API_KEY: {VALUE}\n      {VALUE}\n",
    "in a wrong place": f"env: {{API_KEY: {VALUE}}}\n",
    "beside an error": f"  env: {{API_KEY: {VALUE}, B: [1]}}\n",
    "in a variable of a pod": f"targets: {{gke: {{extra: {{env: [{{name: API_KEY, value: {VALUE}}}]}}}}}}\n",
    "in a text that is not YAML": f"  env: [\n    API_KEY: {VALUE}\n",
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("format_", FORMATS)
def test_no_format_shows_the_value(
    kind: str, format_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No output of a check has the value, in whatever form the spec has it."""
    head = json.dumps(spec(trainer={}, trainer__image="a")["environments"])
    text = (
        f"version: 1\nname: mnist\ntarget: vertex-ai\nsizes: [v2-8]\nenvironments: {head}\n"
        "training: {tuned_on: v2-8, batch_size: 8, train_steps: 1000}\n"
        f"trainer:\n  image: a\n{TEXTS[kind]}"
    )
    file = tmp_path / "tpucfg.yaml"
    file.write_text(text)
    run(["check", "--spec", str(file), "--format", format_])
    output = "".join(capsys.readouterr())
    assert output
    assert VALUE not in output


def test_the_hidden_text_keeps_every_column() -> None:
    """Only the values are replaced, by as many characters, so that locations still fit."""
    text = "\n".join(TEXTS.values())
    for part in TEXTS.values():
        hidden = hidden_text(read_text(part, "x"))
        assert [len(row) for row in hidden.split("\n")] == [len(row) for row in part.split("\n")]
        assert hidden.replace("*", "") in part or "*" in hidden
    assert hidden_text(read_text("a: 1\n", "x")) == "a: 1\n"
    assert VALUE in text


def test_a_text_without_credentials_is_unchanged() -> None:
    """A spec without a credential is shown as it is."""
    data: Any = spec(trainer__env={"MAX_TOKENS": "x", "KEY_FILE": "/a"})
    assert hidden_text(document(data)) == document(data).text
    assert loaded(data)[1] == ()


def test_a_service_without_secrets_gets_the_lines_of_the_trainer() -> None:
    """Vertex AI refuses trainer.secrets, so that the edit reads the secret in the program; it leaves no error."""
    findings = compiled(spec(trainer__env={"HF_TOKEN": VALUE})).findings
    (finding,) = findings
    assert finding.help.startswith(
        "store the value in Secret Manager, delete trainer.env.HF_TOKEN, add these lines"
    )
    (line,) = (line for line in finding.details if line.startswith("os.environ"))
    assert line.startswith(
        'os.environ["HF_TOKEN"] = client.access_secret_version(name="projects/my-project-dev/'
    )
    assert any(
        line.startswith("gcloud secrets add-iam-policy-binding hf-token ")
        for line in finding.details
    )
    compile(
        "\n".join(line for line in finding.details if not line.startswith("gcloud")),
        "trainer.py",
        "exec",
    )


def test_a_layer_of_two_services_gets_both_edits() -> None:
    """The secret is a reference where the service has them, and lines of the trainer elsewhere."""
    environments = {
        "dev": {"project": "my-project-dev", "region": "us-central1"},
        "prod": {"project": "my-project-prod", "region": "us-central1", "target": "cloud-tpu"},
    }
    findings = compiled(spec(environments=environments, trainer__env={"HF_TOKEN": VALUE})).findings
    finding = next(finding for finding in findings if finding.id == "TPU017")
    moved = "replace trainer.env.HF_TOKEN by HF_TOKEN: hf-token/1 under environments.prod.trainer.secrets"
    assert moved in finding.help
    assert "add these lines to the trainer for dev" in finding.help


TOKENS = {
    "hf": f"hf_{'a1B2' * 9}",
    "aws": f"AKIA{'A1B2' * 4}",
    "github": f"ghp_{'a1B2' * 9}",
    "address": f"postgres://user:{VALUE}@host/db",
    "slack": "https://hooks.slack.com/services/T00000000/B00000000/a1b2c3d4e5f6",
}


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_of_a_known_form_is_an_error_under_any_name(kind: str) -> None:
    """A variable, a flag and a text in a list are found by their form, and not shown."""
    token = TOKENS[kind]
    for change in (
        {"trainer__env": {"X": token}},
        {"trainer__args": {"x": ["a", token]}},
        {"overrides__v2-32__args": {"x": token}},
        {
            "targets__vertex-ai__extra": {
                "workerPoolSpecs": [{"containerSpec": {"env": [{"name": "X", "value": token}]}}]
            }
        },
    ):
        result = compiled(spec(**change))
        (finding,) = [finding for finding in result.findings if finding.id == "TPU017"]
        assert "has the form of a credential" in finding.message
        assert finding.help.startswith("store the value in Secret Manager, delete ")
        assert token not in result.source
        assert token not in "".join(finding.lines)


def test_each_layered_key_is_searched() -> None:
    """A setting that is neither a variable nor a flag may have a token too; keys of an environment have none."""
    token = TOKENS["hf"]
    findings = compiled(spec(trainer__xla_flags={"v2": [f"--xla_a={token}"]})).findings
    (finding,) = (finding for finding in findings if finding.id == "TPU017")
    assert finding.message.startswith("trainer.xla_flags.v2 has the form of a credential")
    labels = {"labels": {"key": VALUE}}
    environments = {"dev": {"project": "my-project-dev", "region": "us-central1", **labels}}
    assert "TPU017" not in ids(compiled(spec(environments=environments)).findings)


@pytest.mark.parametrize(
    "value",
    [
        "postgres://user:$(DB_PASSWORD)@host/db",
        "https://log.example.com:8080/a@b",
        "gs://bucket/x@1",
        "hf_home",
        "sk-learn",
    ],
)
def test_a_text_that_only_resembles_a_token_is_none(value: str) -> None:
    """An address without a password, or with a reference to one, can be set."""
    assert "TPU017" not in ids(
        compiled(spec(trainer__env={"X": value.replace("$(", "$$(")})).findings
    )


@pytest.mark.parametrize(
    ("target", "extra"),
    [
        (
            "gke",
            {
                "spec": {
                    "replicatedJobs": [{"name": "a", "env": [{"name": "HF_TOKEN", "value": VALUE}]}]
                }
            },
        ),
        ("cloud-tpu", {"tpu": {"nodeSpec": [{"node": {"metadata": {"HF_TOKEN": VALUE}}}]}}),
    ],
)
def test_extra_contains_no_credentials(target: str, extra: dict[str, Any]) -> None:
    """A variable and an entry of the metadata are credentials by their name, in the layer that sets `extra`."""
    for layer in ("", "environments__dev__"):
        result = compiled(spec(target=target, **{f"{layer}targets__{target}__extra": extra}))
        (finding,) = [finding for finding in result.findings if finding.id == "TPU017"]
        section = f"{layer.replace('__', '.')}trainer.secrets"
        assert finding.help.endswith(f"replace it by HF_TOKEN: hf-token/1 under {section}")
        assert VALUE not in result.source
