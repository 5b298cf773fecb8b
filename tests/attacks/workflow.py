"""Attacks on the workflow that runs the review."""

from typing import Final

from attacks.attack import Attack, append, delete, edit, link, together, write

_WORKFLOW: Final = ".github/workflows/review.yml"
_COMMENT: Final = ".github/actions/comment/comment.sh"
_CHANGED: Final = (
    "changed: continuous integration or another tool decides by it what runs, with which rights"
)
_OTHER: Final = (
    "on: pull_request\njobs: {{x: {{runs-on: ubuntu-24.04, {}steps: [{{run: ./x}}]}}}}\n"
)

ATTACKS: Final = (
    Attack(
        "workflow-changed",
        append(_WORKFLOW, "# harmless\n"),
        (f"`{_WORKFLOW}` {_CHANGED}",),
        status=0,
    ),
    Attack("workflow-removed", delete(_WORKFLOW), (f"`{_WORKFLOW}` {_CHANGED}",), status=0),
    Attack(
        "workflow-as-link",
        together(write("other.yml", "on: push\n"), link(_WORKFLOW, "../../other.yml")),
        (f"`{_WORKFLOW}` {_CHANGED}",),
        status=0,
    ),
    Attack(
        "workflow-of-another-name-changed",
        edit(".github/workflows/checks.yml", ("--fail-on destructive", "--fail-on none")),
        (f"`.github/workflows/checks.yml` {_CHANGED}",),
        status=0,
        base=write(
            ".github/workflows/checks.yml", "on: push\n# tpucfg review --fail-on destructive\n"
        ),
    ),
    Attack(
        "comment-script-changed",
        append(_COMMENT, "exit 0\n"),
        (f"`{_COMMENT}` {_CHANGED}",),
        status=0,
    ),
    Attack(
        "review-script-changed",
        edit(".github/actions/review/review.sh", ("tpucfg review", "true")),
        (f"`.github/actions/review/review.sh` {_CHANGED}",),
        status=0,
    ),
    Attack(
        "fail-on-of-the-action-changed",
        edit(".github/actions/review/action.yml", ("    default: none\n", '    default: ""\n')),
        (f"`.github/actions/review/action.yml` {_CHANGED}",),
        status=0,
    ),
    Attack(
        "gitlab-pipeline-changed",
        write(".gitlab-ci.yml", "review: {script: [tpucfg review --base main || true]}\n"),
        (f"`.gitlab-ci.yml` {_CHANGED}",),
        status=0,
        base=write(".gitlab-ci.yml", "review: {script: [tpucfg review --base main]}\n"),
    ),
    Attack(
        "second-workflow-may-comment",
        write(
            ".github/workflows/greet.yml",
            _OTHER.format("permissions: {{issues: write}}, ".format()),
        ),
        (f"`.github/workflows/greet.yml` {_CHANGED}",),
        status=0,
    ),
    Attack(
        "second-workflow-has-default-permissions",
        write(".github/workflows/greet.yaml", _OTHER.format("")),
        (f"`.github/workflows/greet.yaml` {_CHANGED}",),
        status=0,
    ),
)
