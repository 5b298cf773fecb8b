"""The script that puts the review on a pull request, against a stand-in of GitHub's API."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from github_comments import BOT, NONE, Comments
from spec_factory import ROOT
from tpucfg.review.markdown.comment import marker

SCRIPT = ROOT / ".github" / "actions" / "comment" / "comment.sh"
MARKER = "<!-- tpucfg-review -->"
pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is not on the PATH, which the script needs"
)
COMMIT = "0123456789abcdef" * 2 + "01234567"
Post = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def post(comments: Comments, tmp_path: Path) -> Post:
    """Runs the script for a comment."""

    def run(body: str | None, **more: str) -> "subprocess.CompletedProcess[str]":
        if body is not None:
            (tmp_path / "comment.md").write_text(body)
        environment = {
            "PATH": os.environ["PATH"],
            "GITHUB_API_URL": comments.url,
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "42",
            "GITHUB_REPOSITORY": comments.repository,
            "NUMBER": str(comments.number),
            "AUTHOR": BOT,
            "TOKEN": comments.token,
            "COMMENT": "comment.md",
            "SPEC": "tpucfg.yaml",
            "COMMIT": COMMIT,
            "TMPDIR": str(tmp_path),
            **more,
        }
        command = ["bash", str(SCRIPT)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_first_review_is_a_new_comment(comments: Comments, post: Post) -> None:
    """To the letter, whatever it holds."""
    body = f'{MARKER}\n# a `b` "c" \\n $HOME $(id) é 🎉 {{{{ }}}} \\\n'
    assert post(body).returncode == 0
    assert comments.ours == [body]


def test_same_review_writes_nothing(comments: Comments, post: Post) -> None:
    """Also where somebody's browser has made other line ends of it."""
    post(f"{MARKER}\nsame\n")
    comments.listed[-1]["body"] = f"{MARKER}\r\nsame"
    done = post(f"{MARKER}\nsame\n")
    assert done.stdout == "The comment is already up to date.\n"
    assert len(comments.writes) == 1


def test_other_review_takes_its_place(comments: Comments, post: Post) -> None:
    """There is one comment, and it is the last review."""
    post(f"{MARKER}\nold\n")
    assert post(f"{MARKER}\nnew\n").returncode == 0
    assert comments.ours == [f"{MARKER}\nnew\n"]
    assert [call.split()[0] for call in comments.writes] == ["POST", "PATCH"]


def test_comment_is_found_on_a_later_page(comments: Comments, post: Post) -> None:
    """A long discussion hides nothing."""
    for number in range(230):
        comments.add(f"remark {number}")
    comments.add(f"{MARKER}\nold", BOT)
    for number in range(100):
        comments.add(f"remark {number}")
    assert post(f"{MARKER}\nnew\n").returncode == 0
    assert comments.ours == [f"{MARKER}\nnew\n"]
    assert len(comments.calls) == 4


@pytest.mark.parametrize("others", [99, 100, 101, 200])
def test_every_page_is_looked_at_before_one_is_written(comments: Comments, post: Post, others: int) -> None:
    """Whole pages are no end of the list."""
    for number in range(others):
        comments.add(f"remark {number}")
    post(f"{MARKER}\none\n")
    post(f"{MARKER}\ntwo\n")
    assert comments.ours == [f"{MARKER}\ntwo\n"]


def test_comments_of_others_are_left_alone(comments: Comments, post: Post) -> None:
    """Neither a marker that somebody else wrote nor another comment of the bot is taken for ours."""
    comments.add(f"{MARKER}\nmine", "mallory")
    comments.add(f"quoted: {MARKER}", BOT)
    comments.add("coverage: 98%", BOT)
    assert post(f"{MARKER}\nreview\n").returncode == 0
    assert [comment["body"] for comment in comments.listed][:3] == [
        f"{MARKER}\nmine",
        f"quoted: {MARKER}",
        "coverage: 98%",
    ]
    assert comments.ours[-1] == f"{MARKER}\nreview\n"


@pytest.mark.parametrize("there", [True, False])
def test_fork_is_told_where_the_review_is(comments: Comments, post: Post, there: bool) -> None:
    """A token that only reads is no failure: the review is in the run's summary."""
    if there:
        comments.add(f"{MARKER}\nold", BOT)
    comments.may_write = False
    done = post(f"{MARKER}\nnew\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("::notice title=tpucfg review::The token may not ")
    assert "the review is in the summary of this run" in done.stdout


def test_refusal_is_told(comments: Comments, post: Post) -> None:
    """What is no question of rights fails, with GitHub's own words and without the token."""
    done = post(f"{MARKER}\n{'x' * 70_000}\n")
    assert done.returncode == 1
    assert "422 Body is too long (maximum is 65536 characters)" in done.stderr
    assert comments.token not in done.stdout + done.stderr


def test_rate_limit_is_no_lack_of_rights(comments: Comments, post: Post) -> None:
    """GitHub answers 403 there too; a job that passed would leave yesterday's comment for today's."""
    comments.is_busy = True
    done = post(f"{MARKER}\nnew\n")
    assert done.returncode == 1
    assert "403 You have exceeded a secondary rate limit." in done.stderr


@pytest.mark.parametrize("left", [None, "", f"text\n{MARKER}\n", f"{MARKER} all is well\n"])
def test_what_is_no_review_is_not_posted(comments: Comments, post: Post, left: str | None) -> None:
    """Without a file, and with one that is no review, the comment says that there is none, and the step fails."""
    for there in (False, True):
        if there:
            comments.listed[-1]["body"] = f"{MARKER}\nold"
        done = post(left)
        assert done.returncode == 1
        assert "There is no review in comment.md" in done.stderr
        assert comments.ours == [NONE.format("0123456789ab")]


def test_failure_of_a_fork_is_no_notice(comments: Comments, post: Post) -> None:
    """Nobody is sent to a summary that has no review."""
    comments.may_write = False
    done = post("")
    assert done.returncode == 1
    assert "There is no review in comment.md" in done.stderr
    assert "summary" not in done.stdout


@pytest.mark.parametrize("commit", ["", "main", "0123", "[a](b)", "$(id)", "0123456789abcdef\n" * 3])
def test_only_an_id_is_shown_as_the_commit(comments: Comments, post: Post, commit: str) -> None:
    """What is no id stands nowhere."""
    assert post("", COMMIT=commit).returncode == 1
    assert comments.ours == [NONE.format("this commit")]


@pytest.mark.parametrize(
    "spec", ["tpucfg.yaml", "./tpucfg.yaml", "a/b.yaml", "./a/b.yaml", "a--> b/t.yaml", "é/---/~(x)'!*%2F.yaml"]
)
def test_failure_is_found_by_the_specs_marker(comments: Comments, post: Post, spec: str) -> None:
    """Where there is no review, the script makes the marker that a review of the spec would have."""
    own = marker(spec.removeprefix("./"))
    others = [f"{marker(it)}\nold\n" for it in ("tpucfg.yaml", "b.yaml", "z/a/b.yaml") if marker(it) != own]
    for body in (*others, f"{own}\nold\n"):
        assert post(body).returncode == 0
    assert post("", SPEC=spec).returncode == 1
    assert comments.ours[:-1] == others
    assert comments.ours[-1].startswith(f"{own}\n\n### tpucfg review: failed for ")


def test_nothing_is_left_behind(post: Post, tmp_path: Path) -> None:
    """The token is in no file afterwards."""
    post(f"{MARKER}\nnew\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comment.md"]


def test_each_spec_has_its_comment(comments: Comments, post: Post) -> None:
    """Two projects of one repository do not write over each other: the marker names the spec."""
    bodies = [f"<!-- tpucfg-review: {spec}/tpucfg.yaml -->\nold\n" for spec in ("a", "b%20c")]
    for body in (*bodies, f"{MARKER}\nold\n"):
        assert post(body).returncode == 0
    assert post(bodies[0].replace("old", "new")).returncode == 0
    assert comments.ours == [bodies[0].replace("old", "new"), bodies[1], f"{MARKER}\nold\n"]
    assert post("<!-- tpucfg-review: a --><!-- -->\nold\n").returncode == 1
