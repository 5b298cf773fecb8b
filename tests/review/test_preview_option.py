"""`tpucfg review --preview`: changes as Pulumi shows them, instead of those of the stack programs."""

import json
import re
from pathlib import Path

import pytest

from recorded_previews import FOLDER
from repositories import Repository
from reviews import review
from tpucfg.cli.app import run

pytestmark = pytest.mark.programs


@pytest.mark.usefixtures("repository")
def test_unknown_changes_are_not_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """If nothing is known to change, but a preview failed, --fail-on any exits with 1."""
    preview = ("--preview", f"dev={FOLDER / 'config-error.jsonl'}")

    assert "no known changes" in review(capsys, *preview)
    assert run(["review", "--base", "HEAD", *preview, "--fail-on", "any"]) == 1
    assert "some effects are unknown, so --fail-on any cannot be decided" in capsys.readouterr().err


def test_preview_without_an_affected_spec_is_no_error(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A change beside several specs has nothing to show the preview of; the comment names its files."""
    for name in ("a", "b"):
        (repository.folder / name).mkdir()
        (repository.folder / name / "tpucfg.yaml").write_bytes(
            (repository.folder / "tpucfg.yaml").read_bytes()
        )
    repository.git("rm", "-r", "-q", "tpucfg.yaml")
    repository.commit()
    (repository.folder / "notes.tf").write_text("x")

    comment = review(capsys, "--preview", f"a/dev={FOLDER / 'create.jsonl'}")

    assert "_Changed, and not judged by this review: `notes.tf`._" in comment


@pytest.mark.usefixtures("repository")
def test_preview_of_a_new_stack_is_listed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The first preview of a stack creates everything, which a list of names shows; a new member is shown in full."""
    comment = review(capsys, "--preview", f"dev={FOLDER / 'create.jsonl'}")
    assert "\ncreate storage.Bucket data-acme-dev-mnist-dev-us-central1\n" in comment
    assert "uniformBucketLevelAccess" not in comment
    member = review(capsys, "--preview", f"dev={FOLDER / 'member-added.jsonl'}")
    assert "+ role: roles/storage.objectUser" in member


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_preview_replaces_the_program(
    repository: Repository, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """The changes of an environment with a preview are those of the preview, and the footer names the source."""
    repository.edit((":1.0", ":1.1"))
    lifted = FOLDER / f"protection-lifted.{form}"

    comment = review(capsys, "--preview", f"dev={lifted}")

    assert "**dev**: `storage.Bucket`" in comment
    assert "no longer protected" in comment
    assert "Resources of `dev`: from Pulumi's preview. " in comment
    assert "Drift of `dev` is " in comment
    assert "Resources of `prod`: unchanged, as the stack program" in comment
    review(capsys, "--preview", f"dev={lifted}", "--fail-on", "destructive", status=3)


@pytest.mark.usefixtures("repository")
def test_failed_preview_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """The error of a failed preview is in the comment, and its missing changes do not count as none."""
    failed = FOLDER / "config-error.jsonl"

    comment = review(capsys, "--preview", f"dev={failed}")

    assert "no known changes" in comment
    assert "changes to resources are unknown" in comment
    review(capsys, "--preview", f"dev={failed}", "--fail-on", "destructive", status=1)


@pytest.mark.usefixtures("repository")
def test_a_refused_spec_is_named_among_the_cautions(capsys: pytest.CaptureFixture[str]) -> None:
    """The line of a failed preview has the first finding, which is not only in the fold."""
    comment = review(capsys, "--preview", f"dev={FOLDER / 'spec-broken.jsonl'}")

    assert "error[TPU021]: v2-8 is not offered in us-west4" in comment.partition("<details>")[
        0
    ].replace("\\", "")


@pytest.mark.telling
def test_incomplete_preview_is_completed_by_the_program(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """If Pulumi stopped at its first refusal, the program's changes are shown together with the refusal.

    Catches a preview that hides what Pulumi never reached.
    """
    repository.edit(("region: us-central1          #", "region: europe-west4         #"))
    failed = FOLDER / "protected-replacement.jsonl"

    comment = review(capsys, "--preview", f"dev={failed}")

    assert "changes to resources are unknown: pulumi preview did not complete" in comment
    assert "(protected-replacement.jsonl)" in comment
    assert (
        'resource "tpu-agent-on-data-acme-dev-mnist-dev-us-central1" cannot be deleted' in comment
    )
    assert "delete storage.Bucket data-my-project-dev-mnist-dev-us-central1" in comment
    assert str(FOLDER) not in comment


def test_missing_stack_is_no_caution(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the first `pulumi up` the program's changes are shown, and the footer names the missing stack."""
    (repository.folder / "dev.jsonl").write_text("error: no stack named 'dev' found\n")

    comment = review(capsys, "--preview", "dev=dev.jsonl", "--fail-on", "destructive")

    assert "### tpucfg review: no changes\n" in comment
    assert "The stack of `dev` does not exist yet." in comment


def test_long_preview_is_cut_inside(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """Thousands of changes are counted, the fold names what it lacks, and JSON has all of them."""
    urn = "urn:pulumi:dev::mnist::gcp:storage/bucket:Bucket::data-"
    states = {
        state: {"custom": True, "inputs": {"labels": {f"key-{n}": state for n in range(9)}}}
        for state in ("old", "new")
    }
    steps = [
        {"resourcePreEvent": {"metadata": {"op": "update", "urn": f"{urn}{n}", **states}}}
        for n in range(2000)
    ]
    text = "\n".join(json.dumps(event) for event in [*steps, {"summaryEvent": {}}])
    (repository.folder / "dev.jsonl").write_text(text)

    comment = review(capsys, "--preview", "dev=dev.jsonl")

    assert "### tpucfg review: 2,000 resources updated\n" in comment
    assert re.search(r"[0-9,]+ of [0-9,]+ lines are omitted for length", comment)
    assert "`tpucfg review --format json`" in comment
    facts = json.loads(review(capsys, "--preview", "dev=dev.jsonl", "--format", "json"))["facts"]
    assert len([fact for fact in facts if fact.get("after") == "update"]) == 2000


@pytest.mark.usefixtures("repository")
def test_policy_violation_is_a_caution(capsys: pytest.CaptureFixture[str]) -> None:
    """A violation that a policy pack reports is a caution."""
    comment = review(capsys, "--preview", f"dev={FOLDER / 'policy.jsonl'}")

    assert re.search(r"> - \*\*dev\*\*: the mandatory policy `", comment)


@pytest.mark.parametrize("option", ["dev", "=x", "../x=x.json", "dev="])
def test_invalid_preview_option_is_refused(
    repository: Repository, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """A --preview without environment or file exits with 2; a file that cannot be opened exits with 1."""
    (repository.folder / "x.json").write_text("{}")

    assert review(capsys, "--preview", option, status=2) == ""
    assert run(["review", "--base", "HEAD", "--preview", "dev=gone.json"]) == 1
    assert "gone.json: No such file or directory" in capsys.readouterr().err


def test_preview_that_is_a_link_is_refused(
    repository: Repository, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A link could lead to any file of the machine, which the comment would print."""
    (tmp_path / "secret").write_text("hunter2")
    (repository.folder / "dev.jsonl").symlink_to(tmp_path / "secret")

    assert run(["review", "--base", "HEAD", "--preview", "dev=dev.jsonl"]) == 1

    printed = capsys.readouterr()
    assert "dev.jsonl: Too many levels of symbolic links" in printed.err
    assert "hunter2" not in printed.out + printed.err


@pytest.mark.telling
@pytest.mark.parametrize("head", [(), ("--head", "HEAD")])
def test_preview_of_the_change_itself_is_refused(
    repository: Repository, capsys: pytest.CaptureFixture[str], head: tuple[str, ...]
) -> None:
    """A committed preview is a claim of the author of the change.

    Catches a committed file that is taken for a preview.
    """
    (repository.folder / "dev.jsonl").write_text('{"steps": [], "changeSummary": {"same": 12}}')
    repository.commit()

    assert run(["review", "--base", "HEAD", *head, "--preview", "dev=dev.jsonl"]) == 1
    assert (
        "dev.jsonl is part of the change under review, so it proves nothing"
        in capsys.readouterr().err
    )
    repository.git("rm", "--quiet", "--cached", "dev.jsonl")
    repository.git("commit", "--quiet", "--message=x")
    review(capsys, *head, "--preview", "dev=dev.jsonl")


def test_irrelevant_preview_is_a_note(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    """A preview of an unknown or removed environment is a note, and the rest of the comment is complete."""
    (repository.folder / "x.json").write_text("error: no stack named 'x' found\n")
    start = repository.spec.read_text().index("  dev:\n")
    repository.spec.write_text(
        repository.spec.read_text()[:start]
        + repository.spec.read_text()[repository.spec.read_text().index("  prod:\n") :]
    )

    comment = review(capsys, "--preview", "nowhere=x.json", "--preview", "dev=x.json")

    assert (
        "The preview of nowhere is not shown: neither revision has an environment of that name."
        in comment
    )
    assert (
        "The preview of dev failed, and this change removes that environment from the spec."
        in comment
    )
    assert "unknown" not in comment
