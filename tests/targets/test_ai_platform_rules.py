"""Configs of ai-platform that are written by hand."""

import pytest

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
    assert (
        config_findings(read_text(GUIDE_CONFIGS[name], "config.yaml"), "ai-platform", Catalog())
        == ()
    )
