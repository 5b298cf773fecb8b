"""Attacks on the workflow that runs the review."""

from typing import Final

from attacks.attack import Attack, append, delete, edit, link, together, write

_WORKFLOW: Final = ".github/workflows/review.yml"
_COMMENT: Final = ".github/actions/comment/comment.sh"
_RUNS_REVIEW: Final = "it runs this review, so it decides what this comment contains"
_RUN_LATER: Final = "later reviews run it, so it decides what their comments contain"
_OTHER: Final = "on: pull_request\njobs: {{x: {{runs-on: ubuntu-24.04, {}steps: [{{run: ./x}}]}}}}\n"

ATTACKS: Final = (
    Attack("workflow-changed", append(_WORKFLOW, "# harmless\n"), (f"`{_WORKFLOW}` changed: {_RUNS_REVIEW}",)),
    Attack("workflow-removed", delete(_WORKFLOW), (f"`{_WORKFLOW}` removed: {_RUNS_REVIEW}",)),
    Attack(
        "workflow-as-link",
        together(write("other.yml", "on: push\n"), link(_WORKFLOW, "../../other.yml")),
        (f"`{_WORKFLOW}` changed: {_RUNS_REVIEW}",),
    ),
    Attack(
        "workflow-of-another-name-changed",
        edit(".github/workflows/checks.yml", ("--fail-on destructive", "--fail-on none")),
        (f"`.github/workflows/checks.yml` changed: {_RUNS_REVIEW}",),
        base=write(".github/workflows/checks.yml", "on: push\n# tpucfg review --fail-on destructive\n"),
    ),
    Attack("comment-script-changed", append(_COMMENT, "exit 0\n"), (f"`{_COMMENT}` changed: {_RUN_LATER}",)),
    Attack(
        "review-script-changed",
        edit(".github/actions/review/review.sh", ("tpucfg review", "true")),
        (f"`.github/actions/review/review.sh` changed: {_RUN_LATER}",),
    ),
    Attack(
        "fail-on-of-the-action-changed",
        edit(".github/actions/review/action.yml", ("    default: none\n", '    default: ""\n')),
        (f"`.github/actions/review/action.yml` changed: {_RUN_LATER}",),
    ),
    Attack(
        "gitlab-pipeline-changed",
        write(".gitlab-ci.yml", "review: {script: [tpucfg review --base main || true]}\n"),
        (f"`.gitlab-ci.yml` changed: {_RUNS_REVIEW}",),
        base=write(".gitlab-ci.yml", "review: {script: [tpucfg review --base main]}\n"),
    ),
    Attack(
        "second-workflow-may-comment",
        write(".github/workflows/greet.yml", _OTHER.format("permissions: {{issues: write}}, ".format())),
        ("`.github/workflows/greet.yml` added: its jobs may write comments, and replace this one",),
        status=0,
    ),
    Attack(
        "second-workflow-has-default-permissions",
        write(".github/workflows/greet.yaml", _OTHER.format("")),
        ("`.github/workflows/greet.yaml` added: its jobs may write comments, and replace this one",),
        status=0,
    ),
)
