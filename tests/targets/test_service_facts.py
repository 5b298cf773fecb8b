"""Facts of services that tables state, here a second time: a slip of the hand in one of them would go unseen."""

from typing import Final

import pytest

from tpucfg.infra.resource_rules import _PARENT_KEYS
from tpucfg.plan.rules.access_rules import TARGET_LIMITS, _without_secrets
from tpucfg.plan.rules.unused_settings import _FOUND_IN_RESULTS
from tpucfg.spec.presets import PRESETS
from tpucfg.targets.ai_platform.rules import REGIONS, RUNTIMES

_FACTS: Final = {
    # https://cloud.google.com/ai-platform/training/docs/using-tpus
    "the regions of AI Platform": (REGIONS, ("us-central1", "europe-west4")),
    # https://cloud.google.com/ai-platform/training/docs/reference/rest/v1/projects.jobs (pythonVersion)
    "the Pythons of AI Platform": (
        RUNTIMES,
        {"1.13": "3.5", "1.14": "3.5", "1.15": "3.7", "2.1": "3.7", "2.2": "3.7"},
    ),
    # https://github.com/AI-Hypercomputer/maxtext/blob/e591f30/src/maxtext/configs/base.yml
    "the flags of MaxText": (
        {name: flag for name, flag in PRESETS["maxtext"].flags.items() if flag != name},
        {
            "batch_size": None,
            "sequence_length": "max_target_length",
            "grad_accum": "gradient_accumulation_steps",
            "train_steps": "steps",
            "epochs": "num_epoch",
        },
    ),
    # The pages are in the table.
    "the limits of targets": (
        [f"{row.target} {row.key}" for row in TARGET_LIMITS],
        [
            *(
                f"ai-platform {key}"
                for key in ("env", "secrets", "xla_flags", "mounts", "restarts")
            ),
            *("vertex-ai restarts", "vertex-ai secrets"),
            *(f"{target} package" for target in ("cloud-tpu", "compute-engine", "gke")),
        ],
    ),
    # https://www.pulumi.com/registry/packages/gcp/
    "the parents of resources": (
        {*_PARENT_KEYS},
        {
            "project",
            "bucket",
            "serviceAccountId",
            "folder",
            "orgId",
            "billingAccountId",
            "cryptoKeyId",
            "parent",
        },
    ),
    "the sections by which a credential has its lines": (
        vars(_without_secrets)["sections"],
        ("name", "target", "environments", "sizes"),
    ),
    "the findings about files of results": (_FOUND_IN_RESULTS, {"TPU106", "TPU108", "TPU129"}),
}


@pytest.mark.parametrize("name", _FACTS)
def test_a_table_has_the_facts_of_its_source(name: str) -> None:
    """Each table is compared with its source by hand, and with this list by the test."""
    table, facts = _FACTS[name]
    assert table == facts
