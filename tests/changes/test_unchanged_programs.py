"""Stack programs that are not run, because nothing that they read has changed."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from repositories import Repository, project
from tpucfg.changes import programs
from tpucfg.changes.revisions import CompiledRevision, open_compiled_revisions
from tpucfg.cli.app import run
from tpucfg.git.snapshots import CompareRequest
from tpucfg.infra.stack_program import run_stack_program
from tpucfg.plan import Selection

ARGUMENT: Final = "    model_dir: ${run_dir}\n"
DEV: Final = "  dev:\n"
# File, old text, new text: without an old text, the new one is added at the end.
Edit = tuple[str, str, str]
READ_BY_NO_PROGRAM: Final[dict[str, Edit]] = {
    "batch": ("tpucfg.yaml", "batch_size: 1024", "batch_size: 2048"),
    "rate": ("tpucfg.yaml", "learning_rate: 0.1", "learning_rate: 0.2"),
    "steps": ("tpucfg.yaml", "warmup_steps: 200", "warmup_steps: 400"),
    "argument": ("tpucfg.yaml", ARGUMENT, f"{ARGUMENT}    dropout: 0.1\n"),
    "variable": ("tpucfg.yaml", ARGUMENT, f"{ARGUMENT}  env: {{LOG_LEVEL: debug}}\n"),
    "xla-flag": ("tpucfg.yaml", ARGUMENT, f"{ARGUMENT}  xla_flags: {{v2: [--xla_jf_x=true]}}\n"),
    "image-tag": ("tpucfg.yaml", "mnist:1.0", "mnist:1.1"),
    "rung": ("tpucfg.yaml", "", "overrides: {v2-32: {learning_rate: 0.3}}\n"),
    "probe": ("tpucfg.yaml", "", "probe: {steps: 50}\n"),
    "gate": ("tpucfg.yaml", "", "gate: {max_usd: 10}\n"),
    "prices": ("tpucfg.yaml", "", "prices: {v2: 1.5}\n"),
    "tune": ("tpucfg.yaml", "", "tune: {grad_accum: [1, 2]}\n"),
    "comment": ("tpucfg.yaml", "", "# ready\n"),
    "page": ("README.md", "", "# Digits\n"),
}
READ_BY_PROGRAMS: Final[dict[str, Edit]] = {
    "name": ("tpucfg.yaml", "name: mnist", "name: digits"),
    "environment": ("tpucfg.yaml", DEV, f"  live: {{project: p-live, region: us-central1}}\n{DEV}"),
    "region": ("tpucfg.yaml", "us-central1", "europe-west4"),
    "bucket": ("tpucfg.yaml", DEV, f"{DEV}    bucket: other\n"),
    "label": ("tpucfg.yaml", DEV, f"{DEV}    labels: {{team: vision}}\n"),
    "protection": ("tpucfg.yaml", DEV, f"{DEV}    protect: true\n"),
    "data": ("tpucfg.yaml", DEV, f"{DEV}    keep_data: false\n"),
    "key": (
        "tpucfg.yaml",
        DEV,
        f"{DEV}    kms_key: projects/p/locations/l/keyRings/r/cryptoKeys/k\n",
    ),
    "reads": ("tpucfg.yaml", DEV, f"{DEV}    reads: {{gs://data: us-central1}}\n"),
    "account": (
        "tpucfg.yaml",
        "",
        "targets: {vertex-ai: {service_account: x@my-project-dev.iam.gserviceaccount.com}}\n",
    ),
    "allowed": ("tpucfg.yaml", "", "allow: {TPU041: ours}\n"),
    "member": ("stacks/Pulumi.dev.yaml", "", "config: {bucketMembers: [user:a@example.com]}\n"),
    "project": ("Pulumi.yaml", "", "description: other\n"),
    "packages": ("requirements.txt", "", "x==1\n"),
    "program": ("stacks/__main__.py", "", "# other\n"),
    "module": ("stacks/json.py", "", "x = 1\n"),
}


GKE: Final[tuple[Edit, ...]] = (
    ("tpucfg.yaml", "target: vertex-ai", "target: gke"),
    ("tpucfg.yaml", "[v2-8, v2-32, v2-128]", "[v5litepod-4, v5litepod-16]"),
    ("tpucfg.yaml", "tuned_on: v2-8", "tuned_on: v5litepod-4"),
    ("tpucfg.yaml", ARGUMENT, f"{ARGUMENT}  secrets: {{KEY: wandb/3}}\n"),
    ("tpucfg.yaml", "", "targets: {gke: {node_service_account: n@p.iam.gserviceaccount.com}}\n"),
)
"""The project on another target, whose stack grants access to images and secrets."""
READ_ON_GKE: Final[dict[str, Edit]] = {
    "repository": ("tpucfg.yaml", "my-project/train/", "other/train/"),
    "secret": ("tpucfg.yaml", "KEY: wandb", "KEY: other"),
    "namespace": ("tpucfg.yaml", "{gke: {", "{gke: {namespace: other, "),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project with one commit, to copy."""
    return project(tmp_path_factory.mktemp("unchanged") / "project").folder


@pytest.fixture
def repository(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return a copy of the project, which is the current folder."""
    repository = Repository(Path(shutil.copytree(template, tmp_path / "project")))
    monkeypatch.chdir(repository.folder)
    return repository


def edit(repository: Repository, edit: Edit) -> None:
    """Apply an edit."""
    file, old, new = edit
    if old:
        repository.edit((old, new), file=file)
        return
    with (repository.folder / file).open("a") as opened:
        opened.write(new)


def has_equal_inputs() -> bool:
    """Return True if a review of the working tree runs no program; both then declare the same."""
    request = CompareRequest("HEAD", None, Path("tpucfg.yaml"), with_program=True)
    with open_compiled_revisions(request, Selection()) as (before, after):
        assert not after.is_broken, after.findings
        is_equal = programs.has_equal_inputs(before, after)
        for name in after.environments if is_equal else ():
            assert declared(before, name) == declared(after, name)
    return is_equal


def declared(revision: CompiledRevision, name: str) -> object:
    """Return the resources of an environment, by running the program in this process."""
    assert revision.project
    result = run_stack_program(revision.snapshot.spec, revision.project, name)
    return result.resources, result.outputs, result.providers, result.unseen


@pytest.mark.parametrize("name", READ_BY_NO_PROGRAM)
def test_no_program_runs_for_what_it_does_not_read(repository: Repository, name: str) -> None:
    """The resources are equal too, as a run of both programs shows."""
    edit(repository, READ_BY_NO_PROGRAM[name])

    assert has_equal_inputs()


@pytest.mark.parametrize("name", READ_BY_PROGRAMS)
def test_programs_run_for_what_they_read(repository: Repository, name: str) -> None:
    """An environment, a grant or the program itself may have changed."""
    edit(repository, READ_BY_PROGRAMS[name])

    assert not has_equal_inputs()


@pytest.mark.parametrize("name", READ_ON_GKE)
def test_programs_run_for_images_and_secrets(repository: Repository, name: str) -> None:
    """Another tag of an image, or version of a secret, changes no grant."""
    for one in GKE:
        edit(repository, one)
    repository.commit()
    edit(repository, ("tpucfg.yaml", "mnist:1.0", "mnist:1.1"))
    edit(repository, ("tpucfg.yaml", "wandb/3", "wandb/4"))
    assert has_equal_inputs()

    edit(repository, READ_ON_GKE[name])

    assert not has_equal_inputs()


@pytest.mark.parametrize(
    "name", ["stacks/__main__.py", "stacks/json.py", "stacks/json/__init__.py"]
)
def test_own_program_runs_always(repository: Repository, name: str) -> None:
    """A program of one's own may read anything of a spec, so that it is run."""
    (repository.folder / name).parent.mkdir(exist_ok=True)
    with (repository.folder / name).open("a") as file:
        file.write("# own\n")
    repository.commit()
    edit(repository, READ_BY_NO_PROGRAM["batch"])

    assert not has_equal_inputs()


def test_review_starts_no_program(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comment has the reason why the resources are known, and no packages of Pulumi are needed."""
    monkeypatch.setattr(programs, "run_programs", lambda _: pytest.fail("a program is started"))
    edit(repository, READ_BY_NO_PROGRAM["batch"])
    capsys.readouterr()

    assert run(["review", "--base", "HEAD", "--fail-on", "caution"]) == 0

    comment = capsys.readouterr().out
    assert "2,048" in comment
    assert "Resources: unchanged, as the stack program and all that it reads are equal" in comment
