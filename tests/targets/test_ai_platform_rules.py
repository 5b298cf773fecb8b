"""Rules for configs of ai-platform, rendered or written by hand."""

import json
from typing import Any

import pytest

from ai_platform_specs import OF_MACHINE, located_text, merged
from tpucfg.catalog import Catalog
from tpucfg.render.pipeline import config_findings
from tpucfg.yamldoc.reader import read_text

GUIDE_CONFIGS = {
    "basic": "trainingInput: {scaleTier: BASIC_TPU}",
    "legacy": "trainingInput: {scaleTier: CUSTOM, masterType: complex_model_m, workerType: cloud_tpu, workerCount: 1}",
    "compute-engine": """\
trainingInput:
  scaleTier: CUSTOM
  masterType: n1-highcpu-16
  workerType: cloud_tpu
  workerCount: 1
  workerConfig:
    acceleratorConfig:
      type: TPU_V2
      count: 8
""",
    "containers": """\
trainingInput:
  scaleTier: CUSTOM
  masterType: n1-highcpu-16
  masterConfig:
    imageUri: gcr.io/my-project/master:1.0
  workerType: cloud_tpu
  workerCount: 1
  workerConfig:
    imageUri: gcr.io/my-project/worker:1.0
    tpuTfVersion: "2.2"
    acceleratorConfig:
      type: TPU_V3
      count: "8"
""",
}


@pytest.mark.parametrize("name", GUIDE_CONFIGS)
def test_the_guides_own_configs_pass(name: str) -> None:
    """A config as the guide prints it, which leaves region and runtime to the flags, has no finding."""
    assert config_findings(read_text(GUIDE_CONFIGS[name], "config.yaml"), "ai-platform", Catalog()) == ()


def custom(**changes: Any) -> dict[str, Any]:
    """Return the guide's config with a Compute Engine machine, changed."""
    return {"trainingInput": merged(OF_MACHINE["compute-engine"], changes)}


MASTER_IMAGE = {"masterConfig": {"imageUri": "gcr.io/p/i"}, "workerConfig": {"tpuTfVersion": "2.2"}}
FOREIGN: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "parameter servers",
        custom(parameterServerCount=1, parameterServerType="standard"),
        "parameterServerCount",
        '"parameterServerCount"',
    ),
    ("parameter servers as text", custom(parameterServerCount="2"), "parameterServerCount", '"parameterServerCount"'),
    ("32 cores", custom(workerConfig={"acceleratorConfig": {"count": 32}}), "count", "32"),
    ("no count", custom(workerConfig={"acceleratorConfig": {"count": None}}), "count", '"acceleratorConfig"'),
    ("a pod", custom(workerConfig={"acceleratorConfig": {"type": "TPU_V3_POD"}}), "type", '"TPU_V3_POD"'),
    ("a GPU", custom(workerConfig={"acceleratorConfig": {"type": "NVIDIA_TESLA_T4"}}), "type", '"NVIDIA_TESLA_T4"'),
    ("no type", custom(workerConfig={"acceleratorConfig": {"type": None}}), "type", '"acceleratorConfig"'),
    ("no accelerator", custom(workerConfig=None), "acceleratorConfig", '"trainingInput"'),
    ("a legacy master", custom(masterType="complex_model_m"), "acceleratorConfig", '"acceleratorConfig"'),
    ("no master", custom(masterType=None), "masterType", '"trainingInput"'),
    ("another worker", custom(workerType="n1-highcpu-16"), "workerType", '"n1-highcpu-16"'),
    (
        "no worker",
        {"trainingInput": {"scaleTier": "CUSTOM", "masterType": "standard"}},
        "workerType",
        '"trainingInput"',
    ),
    ("two workers", custom(workerCount=2), "workerCount", "2"),
    ("no number of workers", custom(workerCount=None), "workerCount", '"trainingInput"'),
    (
        "the master's TPU",
        custom(masterConfig={"acceleratorConfig": {"type": "TPU_V2", "count": 8}}),
        "acceleratorConfig",
        '"acceleratorConfig"',
    ),
    ("another tier", {"trainingInput": {"scaleTier": "BASIC_GPU"}}, "scaleTier", '"BASIC_GPU"'),
    ("no tier", {"trainingInput": {"region": "us-central1"}}, "scaleTier", '"trainingInput"'),
    ("machines of the basic tier", custom(scaleTier="BASIC_TPU"), "masterType", '"n1-highcpu-16"'),
]


@pytest.mark.parametrize(("config", "field", "location"), [row[1:] for row in FOREIGN], ids=[row[0] for row in FOREIGN])
def test_a_config_that_the_service_refuses_has_one_error(config: dict[str, Any], field: str, location: str) -> None:
    """A config that is valid for the API's schema has one error, at the field that the service refuses."""
    (finding,) = config_findings(read_text(json.dumps(config, indent=1), "config.yaml"), "ai-platform", Catalog())
    assert (finding.id, finding.level, located_text(finding, config)) == ("TPU074", "error", location)
    assert finding.message.partition(":")[0].endswith(field)
    assert finding.help


@pytest.mark.parametrize(
    ("config", "id_"),
    [
        (custom(region="asia-east1"), "TPU027"),
        (custom(runtimeVersion="2.3"), "TPU052"),
        (custom(**merged(MASTER_IMAGE, {"workerConfig": {"tpuTfVersion": "2.11"}})), "TPU052"),
        (custom(runtimeVersion="2.1", pythonVersion="2.7"), "TPU054"),
    ],
    ids=["region", "runtime", "the worker's runtime", "Python"],
)
def test_a_config_has_the_finding_ids_of_a_spec(config: dict[str, Any], id_: str) -> None:
    """Region, runtime and Python have the same ids in the findings about a config as about a spec."""
    (finding,) = config_findings(read_text(json.dumps(config, indent=1), "config.yaml"), "ai-platform", Catalog())
    assert finding.id == id_


def test_a_zero_is_a_missing_field() -> None:
    """`parameterServerCount: 0` requests nothing and is valid."""
    config = json.dumps(custom(parameterServerCount=0))
    assert config_findings(read_text(config, "config.yaml"), "ai-platform", Catalog()) == ()
