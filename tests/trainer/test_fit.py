"""The steps of the JAX trainer, compiled by the real TPU compiler with `tpucfg fit`."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

import trainers
from tpucfg.cli.app import run

RUNGS: Final = {
    "v2-8": ("us-central1", 7.48),
    "v3-32": ("europe-west4", 15.48),
    "v5litepod-16": ("us-west4", 15.75),
}
"""Region of each rung, and the GiB that its devices grant: on a real v3, https://github.com/erfanzar/EasyDeL/issues/142."""
LAYERS, WIDTH, LENGTH, VOCABULARY = 3, 128, 64, 256
HIDDEN, PIXELS, CLASSES = 128, 28 * 28, 10


def _flops_of_mnist(batch_size: int) -> int:
    """Return the work of a step: forward, and the gradients; the images need none."""
    return 2 * batch_size * (2 * PIXELS * HIDDEN + 3 * HIDDEN * CLASSES)


def _flops_of_transformer(batch_size: int) -> int:
    """Return the work of a step: forward, forward again but for each layer's last product, and the gradients."""
    products = 12 * WIDTH**2  # of a layer and token: 3 + 1 for the attention, 4 + 4 behind it
    attention = 2 * LENGTH * WIDTH
    layer = 4 * (products + attention) - 4 * WIDTH**2
    return 2 * batch_size * LENGTH * (LAYERS * layer + 3 * WIDTH * VOCABULARY)


FLOPS: Final = {"mnist": _flops_of_mnist, "transformer": _flops_of_transformer}


def _project(folder: Path, python: str) -> Path:
    """Create a project with one environment for each rung and model."""
    spec = trainers.new(folder, "jax", "cloud-tpu", quick=False).folder / "tpucfg.yaml"
    text = spec.read_text()
    start, end = text.index("sizes:"), text.index("trainer:\n")
    environments = "environments:\n"
    for model in FLOPS:
        size_flags = (
            f"layers: {LAYERS}, width: {WIDTH}, sequence_length: "
            f"'${{sequence_length}}', vocabulary: {VOCABULARY}"
        )
        args = f"{{model: {model}, {size_flags if model == 'transformer' else ''}}}"
        for size, (region, _) in RUNGS.items():
            name = f"{model[:2]}-{size.partition('-')[0]}"
            place = f"project: my-{name}-project, region: {region}, sizes: [{size}]"
            environments += f"  {name}: {{{place}, trainer: {{args: {args}}}}}\n"
    text = text[:start] + environments + text[end:]
    for old, new in (
        ("batch_size: 1024", f"batch_size: 64\n  sequence_length: {LENGTH}"),
        ("python: .venv/bin/python", f"python: {python}"),
    ):
        assert old in text
        text = text.replace(old, new)
    spec.write_text(text)
    return spec


def test_both_models_fit_on_three_generations(
    tmp_path: Path, tpu_python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each rung's memory limit is that of its hardware, and the counted work is that of the closed form."""
    spec = _project(tmp_path / "mnist", tpu_python)
    capsys.readouterr()

    assert run(["fit", "--spec", str(spec)]) == 0, capsys.readouterr().err

    results: list[dict[str, Any]] = json.loads((spec.parent / "results" / "fit.json").read_text())[
        "results"
    ]
    assert len(results) == len(FLOPS) * len(RUNGS)
    for result in results:
        flags, hbm = result["flags"], result["hbm"]
        assert result["fits"]
        assert result["uncounted"] == []
        assert result["flops"] == FLOPS[flags["model"]](int(flags["batch_size"]))
        assert hbm["available"] / 2**30 == pytest.approx(RUNGS[result["size"]][1], abs=0.01)
        assert 0 < hbm["used"] < hbm["available"] / 10
    by_rung = {
        (result["flags"]["model"], result["size"]): result["hbm"]["used"] for result in results
    }
    assert all(by_rung["transformer", size] > by_rung["mnist", size] for size in RUNGS)
