"""Published runs on real TPUs, as programs of the examples with the same model, sharding and batch."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog, Slice

_REGIONS: Final = {
    "v2": "us-central1",
    "v4": "us-central2",
    "v5e": "us-west4",
    "tpu7x": "us-central1",
}
_DEFAULT_REGION: Final = "us-east5"
_GKE_ONLY: Final = frozenset({"tpu7x"})

_SPEC: Final = """\
version: 1
name: bench
target: {target}
sizes: [{size}]
environments:
  dev: {{project: my-project-dev, region: {region}{context}}}
trainer:
  image: us-docker.pkg.dev/my-project-dev/train/bench:1.0
  args: {{model: {model}, mesh: "data=${{data_parallel}},model=${{model_parallel}}", {args}}}
  fit: {{step: "{step}"}}
training:
  tuned_on: {size}
  batch_size: {batch_size}
  sequence_length: {sequence_length}
  train_steps: 1000
  learning_rate: 3e-4
"""


class Run(NamedTuple):
    """A program on a slice, and what is published about it."""

    name: str
    """The folder of its copy."""
    program: str
    """The example."""
    model: str
    """The value of the flag --model."""
    size: str
    batch_size: int
    """The global batch, in sequences."""
    sequence_length: int
    fits: bool | None = None
    """True if the published run trained, False if it ended for lack of memory; None without one to compare with."""
    source: str = ""
    url: str = ""
    outcome: str = ""
    """The published outcome, in a few words."""
    differs: str = ""
    """The points in which the published program is another, as a sentence."""
    args: Mapping[str, str] = {}
    """Further flags."""


_EASYLM: Final = "https://github.com/young-geng/EasyLM/issues"
_RECIPES: Final = "https://github.com/AI-Hypercomputer/tpu-recipes/blob/main/training"
_V5E: Final = "https://github.com/AI-Hypercomputer/maxtext/tree/0ed7bd529b9d690570473c3525d1efeda6b6c944/MaxText/configs/v5e"

RUNS: Final = (
    Run(
        *("easylm-7b-v3-8", "chat", "llama2-7b", "v3-8", 8, 2048),
        *(True, "EasyLM #61", f"{_EASYLM}/61", "trains"),
        "EasyLM computes in float32 and has one sequence on all 8 cores, here each core has one.",
    ),
    Run(
        *("easylm-7b-v3-8-twice", "chat", "llama2-7b", "v3-8", 16, 2048),
        *(False, "EasyLM #61", f"{_EASYLM}/61", "no batch above 1 fits"),
        "as above, with twice the batch.",
    ),
    Run(
        *("easylm-13b-v3-8", "chat", "llama-13b", "v3-8", 8, 2048),
        *(False, "EasyLM #33", f"{_EASYLM}/33", "out of memory"),
        "EasyLM divides the model over the cores by tensor parallelism with a batch of 1, here it is FSDP.",
    ),
    Run(
        *("easylm-7b-v4-256", "chat", "llama2-7b", "v4-256", 1024, 2048),
        *(False, "EasyLM #98", f"{_EASYLM}/98", "out of memory, 87.08 of 30.75 GiB"),
        "EasyLM computes in float32 and has all scores of attention in memory, here no layer is recomputed.",
        {"remat": "none"},
    ),
    Run(
        *("maxtext-16b-v5e-256", "chat", "maxtext-16b", "v5litepod-256", 1536, 2048),
        *(True, "MaxText", _V5E, "trains at 120 TFLOP/s a chip"),
        "MaxText's attention is a Pallas kernel, here it is XLA's, for 512 queries at a time.",
    ),
    Run(
        *("maxtext-32b-v5e-256", "chat", "maxtext-32b", "v5litepod-256", 1024, 2048),
        *(True, "MaxText", _V5E, "trains at 132 TFLOP/s a chip"),
        "as the model of 16B.",
    ),
    Run(
        *("llama3-8b-v6e-16", "chat", "llama3-8b", "v6e-16", 48, 8192),
        *(
            True,
            "tpu-recipes",
            f"{_RECIPES}/trillium/Llama3.1-8B-MaxText/v6e-16",
            "trains, 3.39 s a step",
        ),
        "MaxText moves activations of each layer to the host's memory, here they are recomputed.",
    ),
    Run(
        *("llama2-7b-v5p-512", "chat", "llama2-7b", "v5p-512", 1024, 4096),
        *(True, "tpu-recipes", f"{_RECIPES}/v5p/Llama2-7B-Maxtext", "trains"),
        "MaxText keeps the results of matrix multiplications (`minimal`), here each layer is recomputed.",
    ),
    Run(
        *("mixtral-v6e-256", "fit/moe", "mixtral-8x7b", "v6e-256", 3072, 4096),
        *(
            None,
            "tpu-recipes",
            f"{_RECIPES}/trillium/Mixtral-8x7B-MaxText",
            "trains, 13.5 s a step",
        ),
        "no verdict can be compared, as MaxText moves the inputs of the layers to the host's memory: 12 GiB a device, "
        "which here stay. Here Adam's first moment is in bfloat16.",
    ),
    Run("llama2-7b-v2-8", "chat", "llama2-7b", "v2-8", 8, 2048),
    Run("llama2-7b-v4-32", "chat", "llama2-7b", "v4-32", 64, 2048),
    Run("llama3-8b-tpu7x-32", "chat", "llama3-8b", "tpu7x-32", 64, 8192),
)


def slice_of(size: str) -> Slice:
    """Return the slice of a size in the catalog."""
    slice_ = Catalog().find(size)
    if slice_ is None:
        raise KeyError(size)
    return slice_


def spec_text(run: Run) -> str:
    """Return a spec whose only rung has the run's figures."""
    generation = slice_of(run.size).generation
    return _SPEC.format(
        target="gke" if generation in _GKE_ONLY else "cloud-tpu",
        context=", kube_context: bench" if generation in _GKE_ONLY else "",
        region=_REGIONS.get(generation, "europe-west4" if generation == "v3" else _DEFAULT_REGION),
        size=run.size,
        model=run.model,
        batch_size=run.batch_size,
        sequence_length=run.sequence_length,
        step="trainer:abstract_step"
        if run.program.startswith("fit/")
        else "trainer.fit:abstract_step",
        args=", ".join(
            [
                'sequence_length: "${sequence_length}"',
                *(f"{key}: {value}" for key, value in run.args.items()),
            ]
        ),
    )
