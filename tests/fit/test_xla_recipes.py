"""XLA flags of published recipes: no finding of the spec, and accepted by the compiler of the environment."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from spec_factory import ids, planned, spec
from tpucfg.catalog import Catalog, Slice
from tpucfg.fit.inputs import Topology, compiler_topology

CATALOG: Final = Catalog()
DATA: Final = yaml.safe_load(Path(__file__).with_name("xla_recipes.yaml").read_text())
MISSPELT: Final = "--xla_tpu_enable_async_collective_fusoin=true"

PROGRAM = """
import ast, sys
import jax
from jax.experimental.topologies import get_topology_desc
device = get_topology_desc(sys.argv[1], "tpu", **ast.literal_eval(sys.argv[2])).devices[0]
square = jax.jit(lambda x: x @ x, in_shardings=jax.sharding.SingleDeviceSharding(device))
square.lower(jax.ShapeDtypeStruct((256, 256), "float32")).compile()
print("compiled")
"""


class Recipe(NamedTuple):
    """The flags of one or several pages."""

    generation: str
    pages: tuple[str, ...]
    flags: tuple[str, ...]


RECIPES: Final = [
    Recipe(generation, tuple(row["pages"]), tuple(row["flags"].split()))
    for generation, rows in DATA["recipes"].items()
    for row in rows
]
each_recipe = pytest.mark.parametrize(
    "recipe", RECIPES, ids=lambda recipe: f"{recipe.generation}-{Path(recipe.pages[0]).parent.name}"
)


def one_host(generation: str) -> Slice:
    """Return the smallest slice of four chips or more of a generation."""
    return next(slice_ for slice_ in CATALOG.generation(generation).slices if slice_.chips >= 4)


def compile_with(python: str, generation: str, *flags: str) -> "subprocess.CompletedProcess[str]":
    """Compile a product of two matrices for a generation, with flags for the compiler."""
    asked = compiler_topology(one_host(generation))
    assert isinstance(asked, Topology)
    variables = {
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu",
        "TPU_LOG_DIR": "disabled", "XLA_FLAGS": "", "LIBTPU_INIT_ARGS": " ".join(flags),
    }  # fmt: skip
    command = [python, "-c", PROGRAM, asked.name, str(dict(asked.options))]
    environment = {**os.environ, **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_the_recipes_are_public_and_of_several_generations() -> None:
    """Each page has a repository with a commit, and the five generations with recipes are there."""
    assert [*DATA["recipes"]] == ["v4", "v5e", "v5p", "v6e", "tpu7x"]
    for url in DATA["repositories"].values():
        assert re.fullmatch(r"https://github\.com/AI-Hypercomputer/[a-z-]+/tree/[0-9a-f]{40}", url)
    pages = [page for recipe in RECIPES for page in recipe.pages] + [row["page"] for row in DATA["others"]]
    assert {page.partition("/")[0] for page in pages} == {*DATA["repositories"]}
    assert len({flag for recipe in RECIPES for flag in recipe.flags}) > 100


@each_recipe
def test_a_recipe_in_a_spec_has_no_finding(recipe: Recipe) -> None:
    """The flags are valid values of `trainer.xla_flags`, and reach the job in their order."""
    slice_ = one_host(recipe.generation)
    region = slice_.regions(official=True)[0]
    data = spec(
        target="gke" if "gke" in slice_.targets else slice_.targets[0],
        sizes=[slice_.size],
        training__tuned_on=slice_.size,
        environments__dev__region=region,
        environments__dev__kube_context=f"gke_my-project-dev_{region}_train",
        trainer__xla_flags={recipe.generation: [*recipe.flags]},
    )
    result = planned(data)
    assert ids(result.findings) == []
    (job,) = result.jobs
    assert dict(job.env)["LIBTPU_INIT_ARGS"] == " ".join(recipe.flags)


@each_recipe
def test_the_compiler_accepts_a_recipe(recipe: Recipe, tpu_python: str) -> None:
    """The installed libtpu knows each flag, and compiles a program for the recipe's generation with all of them.

    From JAX 0.12 on, it asks to turn off one that recipes turn on for other generations than v5e.
    """
    process = compile_with(tpu_python, recipe.generation, *recipe.flags)
    if asked := re.search(r"Please disable it with (xla_tpu_enable_async_collective_fusion=false)", process.stderr):
        process = compile_with(tpu_python, recipe.generation, *recipe.flags, f"--{asked[1]}")
    assert process.stdout.endswith("compiled\n"), process.stderr[-1000:]


def test_the_compiler_names_the_flag_that_was_meant(tpu_python: str) -> None:
    """A misspelled flag ends the process with the nearest known one."""
    process = compile_with(tpu_python, "v5e", MISSPELT)
    assert process.returncode
    assert re.search(
        r"Unknown command line flag 'xla_tpu_enable_async_collective_fusoin'\. "
        r"Did you mean: xla_tpu_enable_async_collective_fusion \?",
        process.stderr,
    )


@pytest.mark.parametrize("row", DATA["others"], ids=lambda row: row["flag"].lstrip("-"))
def test_the_compiler_refuses_flags_of_other_programs(row: dict[str, str], tpu_python: str) -> None:
    """The flags that MaxText's pages set elsewhere are unknown to libtpu."""
    process = compile_with(tpu_python, "v6e", row["flag"])
    name = row["flag"].lstrip("-").partition("=")[0]
    assert process.returncode
    assert f"Unknown command line flag '{name}'" in process.stderr
