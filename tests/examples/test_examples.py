"""The examples have no errors and agree with their READMEs."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from spec_changes import impact
from start_command import start_command
from tpucfg.catalog import Catalog
from tpucfg.changes.revision_facts import job_difference
from tpucfg.fit.rung_fit import KnownFits, read_known_fits
from tpucfg.plan import Job, Selection, plan
from tpucfg.render.pipeline import CompiledSpec, compile_project, render_configs
from tpucfg.spec.package_rules import package_findings
from tpucfg.spec.parse import load_project
from tpucfg.spec.settings import Capacity, Secret
from tpucfg.targets import cloud_tpu, compute_engine, target_named

EXAMPLES = Path(__file__).parents[2] / "examples"
SPECS = sorted(path for path in EXAMPLES.rglob("tpucfg.yaml") if path.parent.name != "mistakes")
"""The specs of all examples except `mistakes`, whose errors are intended."""
PYTHON = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent / "compiler")}
PUBLISHED = [
    *("gcloud", "ai-platform", "jobs", "submit", "training", "mnist_dev_v2_8"),
    "--project=my-project-dev",
    "--staging-bucket=gs://my-project-dev-mnist-dev-us-central1",
    "--config=/dev/stdin",
    "--package-path=official",
    "--module-name=official.vision.image_classification.mnist_main",
    "--runtime-version=2.2",
    "--python-version=3.7",
    "--scale-tier=BASIC_TPU",
    "--region=us-central1",
    "--labels=tpucfg-project=mnist,tpucfg-environment=dev,tpucfg-size=v2-8,tpucfg-run=mnist-dev-v2-8",
    "--",
    "--distribution_strategy=tpu",
    "--data_dir=gs://tfds-data/datasets",
    "--model_dir=gs://my-project-dev-mnist-dev-us-central1/jobs/mnist/v2-8",
]
"""The command of Google's guide, with this project's names and labels, and a config, which the guide does not use."""


def compiled(path: Path) -> CompiledSpec:
    """Return the compiled form of an example, checked in its own folder."""
    project, findings = load_project(path)
    assert project is not None, findings
    assert findings == ()
    return compile_project(
        project, Catalog(), earlier_findings=package_findings(project, path.parent)
    )


def planned(path: Path) -> tuple[Job, ...]:
    """Return an example's jobs."""
    project, findings = load_project(path)
    assert project is not None, findings
    return plan(project, Catalog()).jobs


def known_fits(path: Path) -> KnownFits:
    """Return what is known of the fits of an example's rungs."""
    project, findings = load_project(path)
    assert project is not None, findings
    return read_known_fits(project, planned(path), path.parent)


def readme(name: str) -> str:
    """Return an example's README."""
    return (EXAMPLES / name / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.parent.name)
def test_an_example_checks_clean(path: Path) -> None:
    """The only findings are notes with a reason, and the package that the MNIST guide clones later."""
    result = compiled(path)
    problems = [
        (finding.id, finding.message) for finding in result.findings if finding.level != "note"
    ]
    missing = "trainer.package is official, and there is no such folder beside the spec"
    assert problems == ([("TPU053", missing)] if path.parent.name == "ai-platform-mnist" else [])
    assert len(list(render_configs(result))) == len(result.request_bodies)


def test_there_are_specs_for_every_target() -> None:
    """Each target has an example."""
    targets = {job.target for path in SPECS for job in planned(path)}
    assert targets == {"ai-platform", "vertex-ai", "cloud-tpu", "compute-engine", "gke"}


@pytest.mark.parametrize(
    "path",
    [path for path in SPECS if "abstract_step" in path.read_text()],
    ids=lambda path: path.parent.name,
)
def test_the_fits_of_an_example_are_current(path: Path) -> None:
    """A result that is committed is of the rung's present flags and files, and fits."""
    verdicts = {key.size: (fit.verdict, fit.changes) for key, fit in known_fits(path).rungs.items()}
    assert verdicts
    assert {
        size: known for size, known in verdicts.items() if known[0] in {"outdated", "does not fit"}
    } == {}


def test_every_rung_of_the_chat_example_is_known_to_fit() -> None:
    """The documentation shows them, and its gate requires them."""
    assert {
        fit.verdict for fit in known_fits(EXAMPLES / "chat" / "tpucfg.yaml").rungs.values()
    } == {"fits"}


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.parent.name)
def test_no_example_needs_extra(path: Path) -> None:
    """Everything that the examples do has a key of its own."""
    assert not any("extra" in job.options for job in planned(path))


def test_the_chat_environments_differ_by_their_layers() -> None:
    """As in the README: spot in dev and reserved in prod, with other limits, and secrets of each project."""
    jobs = {
        (job.environment.name, job.size): job for job in planned(EXAMPLES / "chat" / "tpucfg.yaml")
    }
    assert len(jobs) == 6
    dev, prod = jobs["dev", "v5litepod-16"], jobs["prod", "v5litepod-16"]
    assert (dev.capacity, prod.capacity) == (Capacity("spot"), Capacity("reservation", "chat-2026"))
    assert [
        (job.restarts, job.max_run_duration and job.max_run_duration.text) for job in (dev, prod)
    ] == [
        (3, "12h"),
        (10, "3d"),
    ]
    assert [job.secrets for job in (dev, prod)] == [
        (Secret("WANDB_API_KEY", project, "wandb", "3"),) for project in ("acme-dev", "acme-prod")
    ]
    largest = jobs["prod", "v5litepod-256x2"]
    assert (largest.slice.chips, largest.slice.hosts, largest.rung.data_parallel) == (512, 128, 128)
    assert {job.rung.steps["save_checkpoints_steps"] for job in jobs.values()} == {50}
    assert {job.rung.micro_batch for job in jobs.values()} == {4}


def test_more_slices_keep_the_batch() -> None:
    """As in the README, steps, batch and rate are those of the smallest rung, and accumulation shrinks to 1."""
    jobs = planned(EXAMPLES / "gke-multislice" / "tpucfg.yaml")
    assert [job.size for job in jobs] == ["v6e-64", "v6e-64x2", "v6e-256x2"]
    assert (
        len({(job.rung.batch_size, job.rung.train_steps, job.rung.learning_rate) for job in jobs})
        == 1
    )
    assert [job.rung.grad_accum for job in jobs] == [8, 4, 1]
    assert [job.capacity.kind for job in jobs] == ["spot", "reservation", "reservation"]


def test_a_job_moves_to_compute_engine_unchanged() -> None:
    """The example renders for Cloud TPU too, and its program starts there with all but the options of the log."""
    project, _ = load_project(EXAMPLES / "compute-engine-v6e" / "tpucfg.yaml")
    assert project
    moved, before = (
        plan(project, Catalog(), Selection(target=target)).jobs for target in (None, "cloud-tpu")
    )
    assert not job_difference(before, moved)
    for one, other in zip(moved, before, strict=True):
        words = container_words(compute_engine.startup_script(one))
        logs = [
            "--log-driver=gcplogs",
            "--log-opt=labels=tpucfg-job",
            f"--label=tpucfg-job={one.name}",
        ]
        assert [word for word in words if word not in logs] == container_words(
            cloud_tpu.startup_script(other)
        )
        assert [word for word in words if word in logs] == logs
        assert words[-len(one.args) - 1 :] == [one.image, *one.args]


def container_words(script: str) -> list[str]:
    """Return the words of the command that creates the container: options, image, and the program's own flags."""
    _, command = script.replace("\\\n", " ").split("docker create")
    return shlex.split(command.partition("\n")[0])


def test_cores_of_tpu7x_are_devices() -> None:
    """As in the README, a tpu7x-16 has 8 chips and 16 devices, of which 4 share one copy of the batch."""
    first, *_ = planned(EXAMPLES / "gke-tpu7x" / "tpucfg.yaml")
    assert (first.slice.chips, first.slice.devices, first.rung.data_parallel) == (8, 16, 4)


@pytest.mark.parametrize(
    ("name", "edits", "cautions"),
    [
        (
            "chat",
            [
                ("capacity: spot", "capacity: on-demand"),
                ("wandb/3", "wandb-of-all/1"),
                ("12h ", "5d "),
            ],
            [
                "every size of dev: capacity changed from spot to on-demand in environments.dev: machines have",
                "every config: secret WANDB_API_KEY changed from wandb/3 to wandb-of-all/1: the program gets its value",
                "every size of dev: maximum run duration changed from 12h to 5d: a run that hangs ends later",
            ],
        ),
        (
            "gke-multislice",
            [
                ("capacity: spot", "capacity: on-demand"),
                ("${bucket}/datasets", "gs://else/x"),
                ("priority: r", "# "),
            ],
            [
                "research: v6e-64: capacity changed from spot to on-demand in overrides.v6e-64: machines have",
                "every config: mount /data changed from ${bucket}/datasets to gs://else/x: gs://else is not the",
                "every config: setting priority removed (was research): it decides which pods wait",
            ],
        ),
        (
            "gke-tpu7x",
            [("  max_run_duration: 2d\n", ""), ("model_parallel: 4 ", "model_parallel: 2 ")],
            [
                "every config: maximum run duration removed (was 2d): nothing else ends a run that hangs"
            ],
        ),
        (
            "vertex-tensorflow",
            [("resnet-tf:2.15", "resnet-tf:latest")],
            ["its tag can mean another image at any time"],
        ),
    ],
)
def test_the_review_of_an_example_has_its_cautions(
    name: str, edits: list[tuple[str, str]], cautions: list[str]
) -> None:
    """A change that makes an example cost more, or gives access, is a caution for all its configs."""
    before = (EXAMPLES / name / "tpucfg.yaml").read_text(encoding="utf-8")
    after = before
    for old, new in edits:
        assert old in after
        after = after.replace(old, new)
    reported = [
        located.plain for located in impact(before, after).statements if located.statement.risk
    ]
    assert all(any(caution in line for line in reported) for caution in cautions), reported


def test_the_published_mnist_job_is_submitted_as_published() -> None:
    """The command is the guide's: bucket, package, module, versions, tier, region, and three flags for the program."""
    ((job, body),) = compiled(EXAMPLES / "ai-platform-mnist" / "tpucfg.yaml").request_bodies
    assert list(start_command(target_named(job.target).submission(job)).argv) == PUBLISHED
    assert body == {
        "trainingInput": {
            "scaleTier": "BASIC_TPU",
            "region": "us-central1",
            "runtimeVersion": "2.2",
            "pythonVersion": "3.7",
            "pythonModule": "official.vision.image_classification.mnist_main",
            "args": PUBLISHED[-3:],
        }
    }


def test_the_mnist_readme_shows_what_submit_prints() -> None:
    """The README has the commands that `submit` prints to start and to watch the job."""
    folder = EXAMPLES / "ai-platform-mnist"
    submit = [sys.executable, "-m", "tpucfg", "submit"]
    printed = subprocess.run(
        submit, cwd=folder, env=PYTHON, check=True, capture_output=True, text=True
    ).stdout
    start, watch, *_ = printed.splitlines()[1:]
    assert shlex.split(start)[-len(PUBLISHED) :] == PUBLISHED
    scripts = re.findall(r"```sh\n(.*?)```", readme(folder.name).replace("\\\n", ""), re.DOTALL)
    blocks = [shlex.split(block) for block in scripts]
    assert shlex.split(start) in blocks
    assert shlex.split(watch.removeprefix("# watch:")) in blocks


def test_the_mnist_spec_has_no_warning_after_the_readmes_steps(tmp_path: Path) -> None:
    """With the clone's package and the setup.py of step 2 beside the spec, there is no warning."""
    spec = tmp_path / "tpucfg.yaml"
    spec.write_bytes((EXAMPLES / "ai-platform-mnist" / "tpucfg.yaml").read_bytes())
    (tmp_path / "official").mkdir()
    (tmp_path / "setup.py").touch()
    assert {finding.level for finding in compiled(spec).findings} == {"note"}


def test_the_jax_ladder_is_that_of_its_readme() -> None:
    """Each rung's hosts and figures are the rows of the README's table, and every rung sees equally many examples."""
    rungs = [job.rung for job in planned(EXAMPLES / "cloud-tpu-jax" / "tpucfg.yaml")]
    rows = [
        f"| {rung.size} | {rung.slice.hosts} | {rung.batch_size:,} | {rung.steps['train_steps']:,} "
        f"| {rung.learning_rate} | {rung.steps['warmup_steps']:,} |"
        for rung in rungs
    ]
    assert len(rows) == 3
    assert all(row in readme("cloud-tpu-jax") for row in rows)
    assert {rung.examples for rung in rungs} == {114_688_000}
    assert "114,688,000 examples" in readme("cloud-tpu-jax")


def test_the_v6e_rungs_run_on_one_machine_type() -> None:
    """As in the README, each rung has hosts of 4 chips, and the learning rate grows with the root of the batch."""
    jobs = planned(EXAMPLES / "gke-v6e" / "tpucfg.yaml")
    assert [(job.slice.hosts, job.slice.chips_per_host) for job in jobs] == [(2, 4), (4, 4), (8, 4)]
    rates = ", ".join(str(job.rung.learning_rate) for job in jobs)
    assert f"{rates}." in readme("gke-v6e")


def test_the_monorepo_has_three_projects_on_three_targets() -> None:
    """The three specs have different names and targets, and as many configs as the README counts."""
    paths = [path for path in SPECS if path.parent.parent.name == "monorepo"]
    jobs = [job for path in paths for job in planned(path)]
    assert {(job.project, job.target) for job in jobs} == {
        ("vision", "vertex-ai"),
        ("speech", "cloud-tpu"),
        ("ranking", "gke"),
    }
    assert len(jobs) == 9
    assert "the nine configs" in readme("monorepo")
