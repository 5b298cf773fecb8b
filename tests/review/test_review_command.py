"""The command `tpucfg review`."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from attacks.attack import MAIN, declare
from recorded_previews import FOLDER
from repositories import DEPLOY, Repository, project
from reviews import review
from spec_factory import ROOT
from tpucfg.cli.app import run
from tpucfg.cli.options import SPEC

pytestmark = pytest.mark.programs

LIFTED = (
    "    protect: true                # Pulumi refuses to delete or replace resources with data\n",
    "",
)
GRANTED = "grants `roles/storage.objectUser` on the bucket `[-a-z0-9]+` to "


@pytest.mark.parametrize(
    ("replaced", "destructive", "anything"),
    [
        (("version: 1", "# x\nversion: 1"), 0, 0),
        ((":1.0", ":1.1"), 0, 3),
        pytest.param(LIFTED, 3, 3, marks=pytest.mark.telling),
    ],
    ids=["nothing", "image", "protection"],
)
def test_fail_on_decides_the_status(
    repository: Repository,
    capsys: pytest.CaptureFixture[str],
    replaced: tuple[str, str],
    destructive: int,
    anything: int,
) -> None:
    """The status depends on --fail-on, the comment does not; the default status is 0.

    The last one catches a loss that ends with status 0.
    """
    repository.edit(replaced)

    comment = review(capsys)
    assert review(capsys, "--fail-on", "destructive", status=destructive) == comment
    assert review(capsys, "--fail-on", "any", status=anything) == comment
    assert review(capsys, "--fail-on", "none") == comment


@pytest.mark.telling
def test_unknown_changes_fail_under_fail_on_destructive(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the program fails, its changes are unknown, and --fail-on destructive exits with 1.

    Catches a failed program that counts as no change.
    """
    repository.edit((DEPLOY, f"{DEPLOY}raise SystemExit(0)\n"), file=MAIN)

    assert "SystemExit" in review(capsys)
    review(capsys, "--fail-on", "destructive", status=1)
    repository.commit()
    repository.edit(("raise SystemExit(0)\n", ""), file=MAIN)
    assert "(HEAD)" in review(capsys)


def test_lifted_protection_fails_without_packages(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without Pulumi, a protection that the spec lifts still has the status of a loss."""
    monkeypatch.setitem(sys.modules, "pulumi_gcp", None)
    repository.edit(("    protect: true ", "    # protect: true "))

    printed = review(capsys, "--fail-on", "destructive", status=3)

    assert "**prod**: protection lifted" in printed
    assert "[infra]'" in printed


def test_hostile_records_are_no_traceback(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records that are links, too large or extreme leave a review with what is known."""
    repository.edit(("# prices: {v2: 1.5}", "prices: {v2: 1e308}"))
    repository.commit()
    results = repository.folder / "results"
    results.mkdir()
    record = '{"metrics": {"examples_per_second": 1e-6}, "name": "mnist", "size": "v2-8"}\n'
    (results / "dev.jsonl").write_text(record)
    (results / "prod.jsonl").symlink_to("/etc/passwd")
    repository.edit(("train_steps: 4000", "train_steps: 8000"))

    comment = review(capsys)
    assert "USD/run on v2-8 in dev" in comment
    assert "`results/prod.jsonl` cannot be read" in comment
    assert "root" not in comment
    (results / "prod.jsonl").unlink()
    (results / "prod.jsonl").write_text(record * 60_000)
    assert "`results/prod.jsonl` cannot be read" in review(capsys)
    assert run(["ladder", "--env", "dev"]) == 0
    assert run(["status", "--env", "dev", "--format", "json"]) == 0


def test_json_has_the_content_of_the_comment(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON has cautions, figures, changes, and whether the change is destructive."""
    repository.edit(LIFTED, ("batch_size: 1024", "batch_size: 2048"))

    data = json.loads(review(capsys, "--format", "json"))

    assert (data["is_change"], data["is_destructive"], data["is_known"]) == (True, True, True)
    assert data["cautions"][0] == {
        "risk": "destructive",
        "text": "**prod**: protection lifted: resources that hold data can be replaced and deleted",
    }
    assert "**prod**: `TPU094`" in data["cautions"][-1]["text"]
    facts = {
        (fact["scope"], fact["name"]): (fact.get("before"), fact.get("after"))
        for fact in data["facts"]
    }
    assert facts["v2-32 in dev, prod", "global batch"] == (4096, 8192)
    assert facts["dev, prod: v2-32", "--batch_size"] == ("4096", "8192")
    bucket = "storage.Bucket data-my-project-prod-mnist-prod-us-central1"
    assert facts["prod", bucket] == (None, "update")
    assert facts["prod", f"{bucket}: protect"] == (True, False)
    assert facts["prod", f"{bucket}: softDeletePolicy.retentionDurationSeconds"] == (
        2592000,
        604800,
    )


def test_json_has_the_documented_keys(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every printed key is documented, and every documented key is printed."""
    repository.edit(LIFTED, (":1.0", ":1.1"))
    document = json.loads(review(capsys, "--format", "json"))
    page = (ROOT / "docs" / "review.md").read_text().partition("<!-- keys of the review")[2]
    lines = page.split("\n\n")[1].splitlines()[2:]
    rows = dict(line.strip("|").split(" | ", 1) for line in lines)

    assert [key for names in rows for key in re.findall(r"`(\w+)`", names)] == [*document]
    for name in ("cautions", "effects", "facts", "specs"):
        (row,) = [row for names, row in rows.items() if f"`{name}`" in names]
        printed = dict.fromkeys(key for item in document[name] for key in item)
        assert re.findall(r"`(\w+)`", row) == [*printed]


@pytest.fixture
def fixed_spec(repository: Repository) -> Repository:
    """Create a project whose last commit has errors in its spec, which the working tree fixes."""
    repository.edit(("tuned_on: v2-8", "tuned_on: v2-9"))
    repository.commit()
    repository.edit(("tuned_on: v2-9", "tuned_on: v2-8"))
    return repository


def test_head_is_checked_alone_if_base_has_errors(
    fixed_spec: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """If base has errors, the resources of head are listed with their findings, and not as changes."""
    fixed_spec.edit(LIFTED)

    comment = review(capsys)
    data = json.loads(review(capsys, "--format", "json"))

    bucket = "storage.Bucket data-my-project-prod-mnist-prod-us-central1"
    assert f"**prod**: `TPU094` {bucket} is not protected" in comment
    assert "resources of <code>prod</code>: 10 declared, none of them protected" in comment
    assert " created" not in comment
    assert (
        "declared by the stack program of the working tree; how they change is unknown" in comment
    )
    assert (data["is_destructive"], data["is_known"]) == (False, False)
    (warning,) = data["facts"]
    assert (warning["name"], "before" in warning) == ("TPU041", False)
    review(capsys, "--fail-on", "destructive", status=1)


def test_an_error_of_the_spec_hides_no_changed_program(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files that `pulumi up` reads are compared without the spec."""
    repository.edit(("tuned_on: v2-8", "tuned_on: v2-9"))
    repository.edit((DEPLOY, f"{DEPLOY}import helper\n"), file=MAIN)
    (repository.folder / "stacks" / "helper.py").write_text("")

    assert (
        "stack program changed in `stacks/__main__.py, stacks/helper.py`"
        in review(capsys, status=1).partition("<details")[0]
    )


@pytest.mark.usefixtures("fixed_spec")
def test_preview_is_shown_if_base_has_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """A preview compares with the real resources, so it is shown beside those that are only declared."""
    comment = review(capsys, "--preview", f"dev={FOLDER / 'protection-lifted.jsonl'}")

    assert "may have changed in ways not shown here" in comment
    assert (
        "resources of <code>dev</code>: 10 no longer protected, 1 with data at risk, 1 updated"
        in comment
    )
    assert "Resources of `dev`: from Pulumi's preview. " in comment
    assert "Drift of `dev` is not detected without `--refresh`" in comment
    assert "Resources of `prod`: declared by the stack program of" in comment


def test_deleted_program_is_reported_if_base_has_errors(
    fixed_spec: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A deleted stack program is a caution, and the footer names the program that was run instead."""
    fixed_spec.git("rm", "-q", "stacks/__main__.py")

    comment = review(capsys)

    assert "stack program changed in `stacks/__main__.py" in comment
    assert (
        "the stack program of the working tree (the one bundled with tpucfg for the working tree)"
        in comment
    )


def test_failed_program_is_reported_if_base_has_errors(
    fixed_spec: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failed program is a caution, as in any other review."""
    fixed_spec.edit((DEPLOY, f"{DEPLOY}1 / 0\n"), file=MAIN)

    assert "**dev, prod**: changes to resources are unknown: the stack program failed" in review(
        capsys
    )


def test_new_member_is_a_caution(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new member is a caution with its role, without the name of a person."""
    file = repository.folder / "stacks" / "Pulumi.dev.yaml"
    file.write_text(
        f'{file.read_text()}  mnist:bucketMembers: ["user:ada@example.com", "group:team@example.com"]\n'
    )

    comment = review(capsys)

    assert re.search(
        r"grants `roles/storage.objectUser` on the bucket `[-a-z0-9]+` to `group:team@example\.com`",
        comment,
    )
    assert re.search(
        r"grants `roles/storage.objectUser` on the bucket `[-a-z0-9]+` to `user:\[redacted\]@example\.com`",
        comment,
    )
    assert "+ role: roles/storage.objectUser" in comment
    assert "ada" not in comment


def test_common_finding_is_one_line(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finding of several environments is one line."""
    code = 'import pulumi_gcp\npulumi_gcp.storage.Bucket("more", location="EU", project="p")\n'
    declare(code)(repository)

    comment = review(capsys)

    expected = "storage.Bucket more is in EU, but the TPUs are in us-central1"
    assert f"> - **dev, prod**: `TPU090` {expected}\n" in comment
    assert comment.count("TPU090") == 1


def test_later_commits_on_base_do_not_count_as_reverted(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The change is compared with its merge base."""
    repository.git("switch", "--quiet", "--create", "topic")
    repository.edit((":1.0", ":1.1"))
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.edit(LIFTED)
    repository.commit()

    assert (
        run(
            [
                "review",
                "--base",
                "main",
                "--head",
                "topic",
                "--run-program",
                "--fail-on",
                "destructive",
            ]
        )
        == 0
    )
    assert "protected" not in capsys.readouterr().out


def test_long_fold_is_cut_inside(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A fold that does not fit is cut inside and names what it lacks; the others are included."""
    flags = "".join(f"    flag_{number}: {'x' * 300}\n" for number in range(190))
    repository.edit(
        ("    data_dir: ${bucket}/data\n", f"    data_dir: ${{bucket}}/data\n{flags}"),
        ("train_steps: 4000", "train_steps: 2000"),
    )
    repository.commit()
    repository.edit(("x" * 300, "y" * 300))
    repository.edit(("train_steps: 2000", "train_steps: 4000"))

    comment = review(capsys)

    assert re.search(r"[0-9,]+ of [0-9,]+ lines are omitted for length", comment)
    assert "+ --train_steps: 4000" in comment
    assert len(comment.encode()) < 65_536


@pytest.mark.telling
def test_output_does_not_depend_on_the_process(repository: Repository) -> None:
    """Processes with different hash seeds, time zones and folders print the same bytes.

    Catches an order of resources that depends on the hash seed: the comment would change with each push.
    """
    repository.edit(LIFTED, (":1.0", ":1.1"), ("v2-128]", "v2-128, v2-256]"))
    printed = [
        subprocess.run(
            [sys.executable, "-m", "tpucfg", "review", "--base", "HEAD", *spec],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "compiler"),
                "PYTHONHASHSEED": seed,
                "TZ": zone,
            },
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone, folder, spec in (
            ("1", "UTC", repository.folder, []),
            ("2", "Asia/Tokyo", repository.folder / "stacks", ["--spec", "../tpucfg.yaml"]),
        )
    ]

    assert printed[0] == printed[1]
    assert b"pulumi" not in printed[0].splitlines()[0]


def test_review_without_pulumi_compares_configs(repository: Repository, tmp_path: Path) -> None:
    """Without Pulumi's packages the configs are compared, and the comment has the command that installs them."""
    repository.edit((":1.0", ":1.1"))
    repository.edit((DEPLOY, f"{DEPLOY}\n"), file=MAIN)
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pulumi'] = None\n")
    completed = subprocess.run(
        [sys.executable, "-m", "tpucfg", "review", "--base", "HEAD"],
        cwd=repository.folder,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'compiler'}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "pip install '/path/to/clone[infra]'" in completed.stdout
    assert "6 configs changed" in completed.stdout
    assert completed.stdout.count("Resource changes are not known: ") == 1
    assert "?" not in completed.stdout
    assert "image changed from" in completed.stdout
    assert not completed.stderr


@pytest.mark.parametrize(
    "repository",
    [("--target", target) for target in ("vertex-ai", "cloud-tpu", "gke")],
    indirect=True,
    ids=" ".join,
)
def test_secret_variables_are_redacted(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable with the name of a secret is redacted on every target, even if allowed, and others are shown."""
    repository.edit(
        (
            "    model_dir: ${run_dir}\n",
            "    model_dir: ${run_dir}\n  env: {WANDB_API_KEY: hunter1, LOG: plain}\n",
        ),
        (
            "version: 1\n",
            "version: 1\nallow: {TPU017: {path: trainer.env.WANDB_API_KEY, reason: a test key}}\n",
        ),
    )
    repository.commit()
    repository.edit(("hunter1", "hunter2"), ("plain", "loud"))

    for form in ("markdown", "json"):
        comment = review(capsys, "--format", form)
        assert "hunter" not in comment
        assert "WANDB_API_KEY" in comment
        assert "loud" in comment


@pytest.mark.telling
def test_secret_in_a_source_line_is_redacted(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """The source line of a finding is shown without the value of a secret.

    Catches a value that a finding quotes before it is redacted.
    """
    repository.edit(
        (
            "    model_dir: ${run_dir}\n",
            "    model_dir: ${run_dir}\n  env: {api_key: hunter2, api_key: hunter3}\n",
        )
    )

    comment = review(capsys, status=1)

    assert "api_key: [secret]" in comment
    assert "hunter" not in comment


def test_output_of_the_program_is_not_in_the_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The output of a stack program is printed to stderr, so the comment begins with its marker."""
    repository = project(tmp_path / "p")
    monkeypatch.chdir(repository.folder)
    capfd.readouterr()
    repository.edit((DEPLOY, f"{DEPLOY}print('from the program')\n"), file=MAIN)

    assert run(["review", "--base", "HEAD"]) == 0
    printed = capfd.readouterr()
    assert printed.out.startswith("<!-- tpucfg-review -->\n")
    assert "from the program" in printed.err


@pytest.mark.parametrize(
    "first",
    [
        "import os\nos._exit(0)\n",
        "from tpucfg.review import comment\ncomment.comment = lambda _: 'all is well'\nraise SystemExit(0)\n",
    ],
    ids=["silences", "forges"],
)
def test_program_cannot_forge_the_review(
    repository: Repository, capsys: pytest.CaptureFixture[str], first: str
) -> None:
    """A program that ends its process or patches the comment leaves its resources unknown."""
    repository.edit((DEPLOY, f"{DEPLOY}{first}"), file=MAIN)

    comment = review(capsys)

    assert comment.startswith("<!-- tpucfg-review -->\n")
    assert "changes to resources are unknown: the stack program" in comment
    review(capsys, "--fail-on", "destructive", status=1)


def test_spec_in_a_folder_is_named(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Marker and heading contain the path in the repository, from each folder of it, and no path ends the marker."""
    nested = repository.folder / "a--> b"
    nested.mkdir()
    (nested / "tpucfg.yaml").write_text(repository.spec.read_text())
    shutil.copytree(repository.folder / "stacks", nested / "stacks")
    repository.commit()
    capsys.readouterr()

    comments = []
    for folder, spec in (
        (repository.folder, "a--> b/tpucfg.yaml"),
        (nested, "tpucfg.yaml"),
        (repository.folder / "stacks", f"{nested}/tpucfg.yaml"),
    ):
        monkeypatch.chdir(folder)
        assert run(["review", "--base", "HEAD", "--spec", spec]) == 0
        comments.append(capsys.readouterr().out)

    assert len({*comments}) == 1
    assert comments[0].splitlines()[0] == "<!-- tpucfg-review: a%2D%2D%3E%20b/tpucfg.yaml -->"
    assert comments[0].splitlines()[2] == "### tpucfg review of `a--> b/tpucfg.yaml`: no changes"


def _without_project(repository: Repository) -> None:
    repository.git("rm", "-q", "-r", "stacks", "Pulumi.yaml")
    repository.commit()


def test_nothing_runs_without_a_pulumi_project(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a stack, the spec alone is compared: lost protection stays a loss, and nothing is unknown or missing."""
    _without_project(repository)
    monkeypatch.setattr("tpucfg.changes.programs.run_programs", None)
    repository.edit(
        ("    protect: true ", "    # protect: true "), ("us-central1  ", "europe-west4  ")
    )

    comment = review(capsys, "--fail-on", "destructive", status=3)
    data = json.loads(review(capsys, "--format", "json"))

    assert "**prod**: protection lifted" in comment
    assert "setting `region` changed from `us-central1` to `europe-west4`" in comment
    assert "Resources" not in comment
    assert data["is_known"]


def test_project_elsewhere_can_read_a_spec(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A Pulumi project in a folder without a spec may be the stack of this one, so the programs are compared."""
    _without_project(repository)
    (repository.folder / "infra").mkdir()
    (repository.folder / "infra" / "Pulumi.yaml").write_text("name: mnist\nruntime: python\n")
    repository.commit()
    repository.edit(("    protect: true ", "    # protect: true "))

    assert "no longer protected" in review(capsys)


def _delete_program(repository: Repository) -> None:
    repository.git("rm", "-q", "stacks/__main__.py")


def _delete_project(repository: Repository) -> None:
    repository.git("rm", "-q", "-r", "stacks", "Pulumi.yaml")


def _rename_project(repository: Repository) -> None:
    repository.edit(("name: mnist", "name: digits"), file="Pulumi.yaml")
    for path in (repository.folder / "stacks").glob("Pulumi.*.yaml"):
        path.write_text(path.read_text().replace("mnist:", "digits:"))


def _point_elsewhere(repository: Repository) -> None:
    (repository.folder / "other.yaml").write_text(repository.spec.read_text())
    repository.edit(("spec: tpucfg.yaml", "spec: other.yaml"), file="stacks/Pulumi.prod.yaml")


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (
            _delete_program,
            ("stack program changed in `stacks/__main__.py", "(the one bundled with tpucfg for "),
        ),
        (
            _delete_project,
            ("stack program changed in `Pulumi.yaml, stacks/", "(the one bundled with tpucfg for "),
        ),
        (
            _rename_project,
            ("Pulumi project renamed from `mnist` to `digits`: the next pulumi up starts with",),
        ),
        (
            _point_elsewhere,
            (
                "stack program changed in `stacks/Pulumi.prod.yaml`",
                "the stack prod reads another spec, other.yaml: select it with --spec other.yaml",
            ),
        ),
    ],
)
def test_changed_program_or_stack_is_a_caution(
    repository: Repository,
    capsys: pytest.CaptureFixture[str],
    edit: Callable[[Repository], None],
    expected: tuple[str, ...],
) -> None:
    """A deleted program, a renamed Pulumi project and a stack with another spec are cautions and changes."""
    edit(repository)

    comment = review(capsys, "--fail-on", "caution", status=3)

    assert "[!CAUTION]" in comment
    assert "no changes" not in comment
    assert [text for text in expected if text not in comment] == []
    review(capsys, "--fail-on", "any", status=3)


def test_access_to_an_existing_environment_is_a_caution(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new member of an existing environment is a caution, even if the change also creates a bucket."""
    more = '\nimport pulumi_gcp\npulumi_gcp.storage.Bucket("more", location="US", project="p", name="more-1")\n'
    program = repository.folder / "stacks" / "__main__.py"
    program.write_text(program.read_text() + more)
    file = repository.folder / "stacks" / "Pulumi.dev.yaml"
    file.write_text(f'{file.read_text()}  mnist:bucketMembers: ["user:ada@example.com"]\n')

    comment = review(capsys)

    assert re.search(
        r"grants `roles/storage.objectUser` on the bucket `[-a-z0-9]+` to `user:\[redacted\]@example\.com`",
        comment,
    )


class _Elements(HTMLParser):
    """The names of the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names = set[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the interface
        self.names.add(tag)


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parent / "comments").glob("*.md")), ids=lambda path: path.stem
)
def test_rendered_comment_has_only_known_elements(path: Path) -> None:
    """Rendered as GitHub's Markdown, a comment contains the elements of its layout and no others."""
    page = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(path.read_text())

    assert _Elements(page).names <= {
        *("h3", "p", "em", "strong", "code", "pre", "ul", "li", "blockquote"),
        *("table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    }


def test_missing_spec_exits_with_1(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A given spec that does not exist is an error; without one, the specs of the whole repository are found."""
    monkeypatch.chdir(repository.folder / "stacks")

    assert run(["review", "--base", "HEAD", "--spec", "tpucfg.yaml"]) == 1
    assert run(["review", "--base", "HEAD"]) == 0
    assert SPEC.name == "tpucfg.yaml"


def test_cost_is_shown_with_its_source(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cost that grows has its rungs and its source; of one that stays, the dearest rung is shown."""
    repository.edit(("# prices: {v2: 1.5}", "prices: {v2: 1.5}"))
    (repository.folder / "results").mkdir()
    record = '{"metrics": {"examples_per_second": 1000}, "name": "mnist", "size": "v2-8"}\n'
    (repository.folder / "results" / "prod.jsonl").write_text(record)
    repository.commit()
    repository.edit(("train_steps: 4000", "train_steps: 8000"))

    comment = review(capsys)
    facts = json.loads(review(capsys, "--format", "json"))["facts"]
    repository.git("checkout", "--quiet", "tpucfg.yaml")
    repository.edit((":1.0", ":1.1"))
    unchanged = review(capsys)

    headline = "6 configs changed; +6.83 USD/run on v2-8 in prod (+100%)\n"
    assert f"### tpucfg review: {headline}" in comment
    assert "| v2-8 in prod | 6.83 → 13.65 (2×) | 6.00 | 1.14 → 2.28 (2×) |" in comment
    assert (
        "The most that a run can cost is not bounded: set trainer.max\\_run\\_duration." in comment
    )
    assert (
        "Hours follow from the examples/s in results/, as committed by the base, or else by the head._"
        in comment
    )
    (usd,) = [fact for fact in facts if (fact["scope"], fact["name"]) == ("v2-8 in prod", "usd")]
    assert (usd["before"], usd["after"]) == (
        pytest.approx(6.83, abs=0.01),
        pytest.approx(13.65, abs=0.01),
    )
    assert "**Cost** as before, of the dearest rung" in unchanged
    assert "| v2-128 in prod | 6.83 | 96.00 |" in unchanged


def test_files_that_an_image_is_made_of_are_followed(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Images have what requirements include, whatever the names; the program of an image is listed as not judged."""
    folder = repository.folder / "image"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM python\nCOPY . .\n")
    (folder / "requirements.txt").write_text("-r more.list\njax\n")
    (folder / "more.list").write_text("optax\n")
    (folder / "train.py").write_text("import jax\n")
    (repository.folder / "tool.py").write_text("import json\n")
    repository.commit()

    (folder / "more.list").write_text("optax @ https://evil.example/optax.whl\n")
    (folder / "train.py").write_text("import json\n")
    (repository.folder / "tool.py").write_text("import re\n")
    (folder / "README.md").write_text("About it.\n")
    (repository.folder / "results").mkdir(exist_ok=True)
    (repository.folder / "results" / "dev.jsonl~").write_text("")
    assert run(["review", "--base", "HEAD"]) == 0
    comment = capsys.readouterr().out
    changed = "`image/more.list` changed: what is built or run with it differs from now on"
    assert changed in comment.partition("**Impact**")[0]
    (unjudged,) = re.findall("_Changed, and not judged by this review: (.*)._", comment)
    assert re.findall(r"[\w/]+\.\w+", unjudged) == [
        "image/README.md",
        "image/train.py",
        "results/dev.jsonl",
        "tool.py",
    ]
