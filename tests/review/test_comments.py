"""Complete comments on real repositories, compared with golden files."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from attacks.attack import BUCKET, MAIN, transform
from fit_repositories import add_step, compiled, write_fits
from goldens import Goldens
from recorded_previews import FOLDER
from repositories import DEPLOY, NEW, Repository
from tpucfg.catalog import Catalog
from tpucfg.cli.app import run
from tpucfg.fit.fit_file import fit_path, read_fit_file, update_fit_file
from tpucfg.spec.project import RESERVED_LABELS

pytestmark = pytest.mark.programs

COMMENTS: Final = Path(__file__).parent / "comments"
Edit = Callable[[Repository], None]
PROTECTED: Final = (
    "    protect: true                # Pulumi refuses to delete or replace resources with data\n",
    "",
)


def _edit(*replaced: tuple[str, str]) -> Edit:
    return lambda repository: repository.edit(*replaced)


def _double_batch(repository: Repository) -> None:
    """Change the batch, steps and warm-up, and so every rung."""
    repository.edit(
        ("batch_size: 1024", "batch_size: 2048"),
        ("train_steps: 4000", "train_steps: 1000"),
        ("warmup_steps: 200", "warmup_steps: 400"),
    )


def _disable_keep_data(repository: Repository) -> None:
    repository.edit(("  dev:\n", "  dev:\n    keep_data: false\n"))


def _open_bucket(repository: Repository) -> None:
    """Change only the stack program, which also prints a line that must not reach the comment."""
    repository.edit((DEPLOY, f"{DEPLOY}print('hello')\n"), file=MAIN)
    transform(BUCKET, 'inputs["public_access_prevention"] = "inherited"')(repository)


def _add_members(repository: Repository) -> None:
    """Add two members, one of them a person."""
    path = repository.folder / "stacks" / "Pulumi.prod.yaml"
    members = '["group:ml@example.com", "user:jane.doe@example.com"]'
    path.write_text(f"{path.read_text()}  mnist:bucketMembers: {members}\n")


def _compile(repository: Repository) -> None:
    add_step(repository)
    write_fits(repository, {"v2-8": 5.5, "v2-32": 3.2, "v2-128": 2})


def _compile_larger_steps(repository: Repository) -> None:
    """Double the batch: one rung no longer fits, one needs more memory, and one is not compiled again."""
    earlier = read_fit_file(fit_path(repository.folder)).results
    repository.edit(
        ("batch_size: 1024", "batch_size: 2048"), ("train_steps: 4000", "train_steps: 2000")
    )
    results = compiled(repository.folder, {"v2-8": 9.1, "v2-32": 4.8})
    both = {**earlier, **{result.key: result for result in results}}
    update_fit_file(fit_path(repository.folder), both.values)


def _add_hostile_values(repository: Repository) -> None:
    """Add values that Markdown or HTML could interpret, mentions, and secrets."""
    repository.edit(
        ("train/mnist:1.0", "train/mnist:1.1"),
        (
            "training:  ",
            "allow: {TPU017: {path: [trainer.args.api_key, trainer.env.WANDB_API_KEY], reason: x}, "  # noqa: ISC004
            "TPU041: '```<script>|@team'}\ntraining:  ",
        ),
        (
            "    data_dir: ${bucket}/data\n",
            "    data_dir: ${bucket}/data\n"  # noqa: ISC004
            "    title: '</details> ```` <script>alert(1)</script> | @team #1 ~~x~~ [a](b) $x$'\n"
            '    lines: "a\\n```\\n# b\\n<!-- c -->\\u202e"\n'
            "    owner: user:jane.doe@example.com\n"
            "    api_key: hunter2\n",
        ),
        (
            "    model_dir: ${run_dir}\n",
            "    model_dir: ${run_dir}\n  env: {WANDB_API_KEY: hunter2, LOG: plain}\n",
        ),
        ("  prod:\n", "  x-team:\n"),
        ("train_steps: 4000", "train_steps: 300"),
    )


SCENARIOS: Final[dict[str, Edit]] = {
    "size-added": _edit(("v2-128]", "v2-128, v2-256]")),
    "tuned-anew": _double_batch,
    "region-moved-losing-data": _edit(
        ("    region: us-central1          #", "    region: europe-west4 #"),
    ),
    "protection-lifted": _edit(PROTECTED),
    "image-bumped": _edit((":1.0", ":1.1")),
    "environment-added": _edit(
        (
            "  prod:\n",
            "  staging:\n    project: my-project-staging\n    region: us-central1\n  prod:\n",
        )
    ),
    "environment-removed": _edit(
        (
            "  dev:\n    project: my-project-dev\n    region: us-central1          # of the bucket and of every job\n",
            "",
        )
    ),
    "other-target": _edit(("target: vertex-ai", "target: cloud-tpu")),
    "spec-broken": _edit(
        ("tuned_on: v2-8", "tuned_on: v2-9"), ("region: us-central1\n", "region: nowhere\n")
    ),
    "access-widened": _add_members,
    "warning-allowed": _edit(("training:  ", "allow: {TPU041: measured on v2-32}\ntraining:  ")),
    "nothing-changed": _edit(("version: 1", "# a comment\nversion: 1")),
    "stack-program": _open_bucket,
    "program-fails": lambda repository: repository.edit((DEPLOY, f"{DEPLOY}1 / 0\n"), file=MAIN),
    "hostile-names": _add_hostile_values,
    "fits": _compile_larger_steps,
}
"""Edits of a project that `tpucfg init` wrote, by the name of the golden file."""


PREPARATIONS: Final[dict[str, Edit]] = {
    "region-moved-losing-data": _disable_keep_data,
    "fits": _compile,
}
"""Edits that are committed before."""


def with_numbered_commits(repository: Repository, text: str) -> str:
    """Return the text with each commit's number instead of its id, which depends on the files of `init`."""
    for number, commit in enumerate(repository.git("rev-list", "--reverse", "HEAD").split(), 1):
        text = text.replace(commit[:12], f"{number}" * 12)
    return text


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.telling if name == "stack-program" else ())
        for name in SCENARIOS
    ],
)
def test_comment_equals_its_golden_file(
    repository: Repository, capsys: pytest.CaptureFixture[str], goldens: Goldens, name: str
) -> None:
    """The comment equals its golden file, for a change that is committed and one that is not.

    The telling one catches a line that the program prints into the comment, and a part that changed unseen.
    """
    if name in PREPARATIONS:
        PREPARATIONS[name](repository)
        repository.commit()
    SCENARIOS[name](repository)
    status = 1 if name == "spec-broken" else 0

    assert run(["review", "--base", "HEAD"]) == status
    text = with_numbered_commits(repository, capsys.readouterr().out)
    repository.commit()
    assert run(["review", "--base", "HEAD~1", "--head", "HEAD", "--run-program"]) == status
    committed = with_numbered_commits(repository, capsys.readouterr().out)

    assert text == goldens.text(COMMENTS / f"{name}.md", text)
    as_tree = re.sub(r"`HEAD`(?: \(\d+\))?", "the working tree", committed)
    assert as_tree.replace("HEAD", "the working tree").replace("the working tree~1", "HEAD") == text
    _assert_well_formed(text)


@pytest.mark.telling
@pytest.mark.parametrize("name", ["first-commit"])
def test_comment_without_a_base_shows_everything_as_new(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    goldens: Goldens,
) -> None:
    """Before the first commit everything is new, and shown without details.

    Catches a revision without a spec that is read as one without resources.
    """
    repository = Repository(tmp_path / "p")
    monkeypatch.chdir(repository.folder)
    run(["init", "--name", "mnist", *NEW])
    capsys.readouterr()

    assert run(["review", "--base", "HEAD"]) == 0
    text = capsys.readouterr().out
    assert text == goldens.text(COMMENTS / f"{name}.md", text)
    _assert_well_formed(text)


@pytest.mark.parametrize("name", ["spec-fixed"])
def test_comment_for_a_fixed_spec_reports_the_fix(
    repository: Repository, capsys: pytest.CaptureFixture[str], goldens: Goldens, name: str
) -> None:
    """A change that fixes the errors of a spec is reported as such, and the status is 0."""
    repository.edit(("tuned_on: v2-8", "tuned_on: v2-9"))
    repository.commit()
    repository.edit(("tuned_on: v2-9", "tuned_on: v2-8"))

    assert run(["review", "--base", "HEAD"]) == 0
    text = with_numbered_commits(repository, capsys.readouterr().out)
    assert text == goldens.text(COMMENTS / f"{name}.md", text)


@pytest.mark.parametrize("repository", [("--target", "gke")], indirect=True)
def test_comment_for_many_configs_is_short(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three hundred changed configs have a summary as short as three, and a fold for each size."""
    sizes = [
        row.size
        for row in Catalog().all()
        if row.generation == "tpu7x" and "us-central1" in row.regions()
    ][:75]
    spec = {
        "version": 1,
        "name": "mnist",
        "target": "gke",
        "sizes": sizes,
        "environments": {
            name: {
                "project": f"my-project-{name}",
                "region": "us-central1",
                "kube_context": "c",
                "bucket": f"bucket-{name}",
            }
            for name in ("dev", "live", "staging", "test")
        },
        "trainer": {
            "image": "r.io/i:1",
            "args": {f"flag_{number}": "x" * 80 for number in range(40)},
        },
        "training": {
            "tuned_on": sizes[0],
            "batch_size": 2**16,
            "train_steps": 10**6,
            "steps": {"eval_steps": 1000},
        },
        "allow": {"TPU022": "x"},
    }
    repository.spec.write_text(json.dumps(spec, indent=1))
    (repository.folder / "stacks" / "__main__.py").write_text("import pulumi\n")
    repository.commit()
    repository.edit(
        ('"train_steps": 1000000', '"train_steps": 2000000'),
        ('"batch_size": 65536', '"batch_size": 131072'),
    )
    repository.edit(("x" * 80, "y" * 80), ('"eval_steps": 1000', '"eval_steps": 2000'))

    assert run(["review", "--base", "HEAD"]) == 0
    text = with_numbered_commits(repository, capsys.readouterr().out)

    assert len(sizes) == 75
    assert text.splitlines()[2] == "### tpucfg review: 300 configs changed"
    assert "75 rungs" in text
    _assert_well_formed(text)


@pytest.mark.parametrize("name", ["drift"])
def test_comment_names_drift(
    repository: Repository, capsys: pytest.CaptureFixture[str], goldens: Goldens, name: str
) -> None:
    """Drift in the cloud is apart from the change."""
    repository.edit(PROTECTED, (":1.0", ":1.2"))
    repository.commit()

    assert (
        run(
            [
                "review",
                "--base",
                "HEAD~1",
                "--head",
                "HEAD",
                "--run-program",
                "--preview",
                f"dev={FOLDER / 'drift.jsonl'}",
            ]
        )
        == 0
    )
    text = with_numbered_commits(repository, capsys.readouterr().out)

    assert text == goldens.text(COMMENTS / f"{name}.md", text)
    _assert_well_formed(text)


def _assert_well_formed(text: str) -> None:
    """Assert what is true for every comment: its size, its markup, and no personal data or secrets."""
    assert text.startswith("<!-- tpucfg-review -->\n")
    assert len(text.encode()) < 65_536
    assert "jane.doe" not in text
    assert "hunter2" not in text
    assert not re.search(
        rf"tpucfg-(?!review -->|{'|'.join(RESERVED_LABELS).replace('tpucfg-', '')})", text
    )
    outside = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", text)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "<script" not in outside
    assert outside.count("<details>") == outside.count("</details>")
