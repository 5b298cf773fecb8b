"""XLA flags of published recipes: no finding of the spec, and accepted by the compiler of the environment."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml

from spec_factory import ids, planned, spec
from tpucfg.catalog import Catalog, Slice
from tpucfg.fit.inputs import Topology, compiler_topology

CATALOG: Final = Catalog()
DATA: Final = yaml.safe_load(Path(__file__).with_name("xla_recipes.yaml").read_text())

PROGRAM: Final = """
import json, os, signal, sys, tempfile
import jax
from jax.experimental.topologies import get_topology_desc

def compile(name, options, flags):
    os.environ["LIBTPU_INIT_ARGS"] = " ".join(flags)
    device = get_topology_desc(name, "tpu", **options).devices[0]
    square = jax.jit(lambda x: x @ x, in_shardings=jax.sharding.SingleDeviceSharding(device))
    square.lower(jax.ShapeDtypeStruct((256, 256), "float32")).compile()

for line in sys.stdin:
    with tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            signal.alarm(120)
            compile(*json.loads(line))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors.seek(0)
        print(json.dumps([status, errors.read()]), flush=True)
"""
"""Compiles a product of two matrices for each line, in a child that loads libtpu, which reads its flags only once."""


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


def one_host(generation: str) -> Slice:
    """Return the smallest slice of four chips or more of a generation."""
    return next(slice_ for slice_ in CATALOG.generation(generation).slices if slice_.chips >= 4)


class Outcome(NamedTuple):
    """The exit status of a compilation, and what it printed to stderr."""

    status: int
    errors: str


Compile = Callable[..., Outcome]


@pytest.fixture(scope="module")
def compile_with(tpu_python: str) -> Iterator[Compile]:
    """Return a function that compiles for a generation with flags for the compiler; JAX is imported only once."""
    variables = {
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1", "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": "cpu",
        "TPU_LOG_DIR": "disabled", "XLA_FLAGS": "",
    }  # fmt: skip
    process = subprocess.Popen(
        [tpu_python, "-c", PROGRAM],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdin
        assert process.stdout
        requests, responses = process.stdin, process.stdout

        def compile_once(generation: str, *flags: str) -> Outcome:
            asked = compiler_topology(one_host(generation))
            assert isinstance(asked, Topology)
            requests.write(json.dumps([asked.name, dict(asked.options), flags]) + "\n")
            requests.flush()
            return Outcome(*json.loads(responses.readline()))

        yield compile_once
        requests.close()
    assert process.returncode == 0


def test_the_recipes_are_public_and_of_several_generations() -> None:
    """Each page has a repository with a commit, and the five generations with recipes are there."""
    assert [*DATA["recipes"]] == ["v4", "v5e", "v5p", "v6e", "tpu7x"]
    for url in DATA["repositories"].values():
        assert re.fullmatch(r"https://github\.com/AI-Hypercomputer/[a-z-]+/tree/[0-9a-f]{40}", url)
    pages = [page for recipe in RECIPES for page in recipe.pages] + [
        row["page"] for row in DATA["others"]
    ]
    assert {page.partition("/")[0] for page in pages} == {*DATA["repositories"]}
    assert len({flag for recipe in RECIPES for flag in recipe.flags}) > 100


@pytest.mark.parametrize(
    "recipe", RECIPES, ids=lambda recipe: f"{recipe.generation}-{Path(recipe.pages[0]).parent.name}"
)
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


def together(generation: str) -> Iterator[tuple[str, ...]]:
    """Yield all flags of a generation's recipes; each that has several values is once in as many groups."""
    groups: list[dict[str, str]] = [{}]
    for recipe in RECIPES:
        for flag in recipe.flags if recipe.generation == generation else ():
            name = flag.partition("=")[0]
            group = next((group for group in groups if group.get(name, flag) == flag), None)
            if group is None:
                groups.append(group := {})
            group[name] = flag
    yield from (tuple(group.values()) for group in groups)


@pytest.mark.parametrize("generation", DATA["recipes"])
def test_the_compiler_accepts_the_flags_of_recipes(generation: str, compile_with: Compile) -> None:
    """The installed libtpu knows each flag with each value, and compiles a program with all of them for the generation.

    From JAX 0.12 on, it asks to turn off one that recipes turn on for other generations than v5e.
    """
    for flags in together(generation):
        outcome = compile_with(generation, *flags)
        if asked := re.search(
            r"Please disable it with (xla_tpu_enable_async_collective_fusion=false)", outcome.errors
        ):
            outcome = compile_with(generation, *flags, f"--{asked[1]}")
        assert outcome.status == 0, outcome.errors[-1000:]


@pytest.mark.parametrize("row", DATA["others"], ids=lambda row: row["flag"].lstrip("-"))
def test_the_compiler_refuses_flags_of_other_programs(
    row: dict[str, str], compile_with: Compile
) -> None:
    """The flags that MaxText's pages set elsewhere are unknown to libtpu."""
    outcome = compile_with("v6e", row["flag"])
    name = row["flag"].lstrip("-").partition("=")[0]
    assert outcome.status
    assert f"Unknown command line flag '{name}'" in outcome.errors
