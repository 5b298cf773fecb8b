"""The script that posts the review on a pull request, run against a stand-in for GitHub's API."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from github_comments import BOT, NONE, Comments
from spec_factory import ROOT
from tpucfg.review.comment import marker

SCRIPT = ROOT / ".github" / "actions" / "comment" / "comment.sh"
MARKER = "<!-- tpucfg-review -->"
pytestmark = [
    pytest.mark.shell,
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("jq")),
        reason="curl or jq is not on the PATH, which the script needs",
    ),
]
COMMIT = "0123456789abcdef" * 2 + "01234567"
Post = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def post(comments: Comments, tmp_path: Path) -> Post:
    """Return a function that runs the script for a comment."""

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
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_first_review_is_a_new_comment(comments: Comments, post: Post) -> None:
    """The body is that of the file, with any special characters."""
    body = f'{MARKER}\n# a `b` "c" \\n $HOME $(id) é 🎉 {{{{ }}}} \\\n'
    assert post(body).returncode == 0
    assert comments.ours == [body]


def test_equal_review_writes_nothing(comments: Comments, post: Post) -> None:
    """An equal comment is not written again, also if a browser changed its line breaks."""
    post(f"{MARKER}\nsame\n")
    comments.listed[-1]["body"] = f"{MARKER}\r\nsame"
    completed = post(f"{MARKER}\nsame\n")
    assert completed.stdout == "The comment is already up to date.\n"
    assert len(comments.writes) == 1


def test_other_review_replaces_the_comment(comments: Comments, post: Post) -> None:
    """There is one comment, with the last review."""
    post(f"{MARKER}\nold\n")
    assert post(f"{MARKER}\nnew\n").returncode == 0
    assert comments.ours == [f"{MARKER}\nnew\n"]
    assert [call.split()[0] for call in comments.writes] == ["POST", "PATCH"]


def test_comment_is_found_on_a_later_page(comments: Comments, post: Post) -> None:
    """The comment is found in a discussion of several pages."""
    for number in range(230):
        comments.add(f"remark {number}")
    comments.add(f"{MARKER}\nold", BOT)
    for number in range(100):
        comments.add(f"remark {number}")
    assert post(f"{MARKER}\nnew\n").returncode == 0
    assert comments.ours == [f"{MARKER}\nnew\n"]
    assert len(comments.calls) == 4


@pytest.mark.parametrize("others", [100, 101])
def test_every_page_is_read_before_a_comment_is_created(
    comments: Comments, post: Post, others: int
) -> None:
    """A full page is not taken for the last one."""
    for number in range(others):
        comments.add(f"remark {number}")
    post(f"{MARKER}\none\n")
    post(f"{MARKER}\ntwo\n")
    assert comments.ours == [f"{MARKER}\ntwo\n"]


def test_comments_of_others_are_not_changed(comments: Comments, post: Post) -> None:
    """A marker in a comment of another author, and other comments of the bot, are ignored."""
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


@pytest.mark.parametrize("exists", [True, False])
def test_read_only_token_is_no_failure(comments: Comments, post: Post, exists: bool) -> None:
    """With a read-only token the script exits with 0 and a notice that names the summary of the run."""
    if exists:
        comments.add(f"{MARKER}\nold", BOT)
    comments.may_write = False
    completed = post(f"{MARKER}\nnew\n")
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith("::notice title=tpucfg review::The token may not ")
    assert "the review is in the summary of this run" in completed.stdout


def test_refusal_fails_with_the_message_of_github(comments: Comments, post: Post) -> None:
    """Any other refusal fails with GitHub's message, and without the token in the output."""
    completed = post(f"{MARKER}\n{'x' * 70_000}\n")
    assert completed.returncode == 1
    assert "422 Body is too long (maximum is 65536 characters)" in completed.stderr
    assert comments.token not in completed.stdout + completed.stderr


def test_rate_limit_fails(comments: Comments, post: Post) -> None:
    """A rate limit has the status 403 too, but must fail: otherwise an old comment would count as current."""
    comments.is_busy = True
    completed = post(f"{MARKER}\nnew\n")
    assert completed.returncode == 1
    assert "403 You have exceeded a secondary rate limit." in completed.stderr


@pytest.mark.parametrize("left", [None, "", f"text\n{MARKER}\n", f"{MARKER} all is well\n"])
def test_invalid_review_is_not_posted(comments: Comments, post: Post, left: str | None) -> None:
    """Without a valid review the comment reports that there is none, and the step fails."""
    for exists in (False, True):
        if exists:
            comments.listed[-1]["body"] = f"{MARKER}\nold"
        completed = post(left)
        assert completed.returncode == 1
        assert "There is no review in comment.md" in completed.stderr
        assert comments.ours == [NONE.format("0123456789ab")]


def test_missing_review_of_a_fork_fails(comments: Comments, post: Post) -> None:
    """Without a review there is no notice, as the summary has none either."""
    comments.may_write = False
    completed = post("")
    assert completed.returncode == 1
    assert "There is no review in comment.md" in completed.stderr
    assert "summary" not in completed.stdout


@pytest.mark.parametrize("commit", ["", "0123", "[a](b)", "0123456789abcdef\n" * 3])
def test_only_a_commit_id_is_shown(comments: Comments, post: Post, commit: str) -> None:
    """A commit that is not an id is not shown."""
    assert post("", COMMIT=commit).returncode == 1
    assert comments.ours == [NONE.format("this commit")]


@pytest.mark.parametrize(
    "spec",
    ["./tpucfg.yaml", "a/b.yaml", "a--> b/t.yaml", "é/---/~(x)'!*%2F.yaml"],
)
def test_marker_of_a_missing_review_equals_that_of_a_review(
    comments: Comments, post: Post, spec: str
) -> None:
    """Without a review the script creates the marker that a review of the spec would have."""
    own = marker(spec.removeprefix("./"))
    others = [
        f"{marker(other)}\nold\n"
        for other in ("tpucfg.yaml", "b.yaml", "z/a/b.yaml")
        if marker(other) != own
    ]
    for other in ("tpucfg.yaml", "b.yaml", "z/a/b.yaml"):
        if marker(other) != own:
            assert post(f"{marker(other)}\nold\n", SPEC=other).returncode == 0
    assert post(f"{own}\nold\n", SPEC=spec).returncode == 0
    assert post("", SPEC=spec).returncode == 1
    assert comments.ours[:-1] == others
    assert comments.ours[-1].startswith(f"{own}\n\n### tpucfg review: failed for ")


def test_temporary_files_are_deleted(post: Post, tmp_path: Path) -> None:
    """No file with the token exists afterwards."""
    post(f"{MARKER}\nnew\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["comment.md"]


def test_each_spec_has_its_comment(comments: Comments, post: Post) -> None:
    """Two projects of one repository have separate comments."""
    bodies = {
        f"{folder}/tpucfg.yaml": f"{marker(f'{folder}/tpucfg.yaml')}\nold\n"
        for folder in ("a", "b c")
    }
    for spec, body in (*bodies.items(), ("", f"{MARKER}\nold\n")):
        assert post(body, SPEC=spec).returncode == 0
    new = bodies["a/tpucfg.yaml"].replace("old", "new")
    assert post(new, SPEC="a/tpucfg.yaml").returncode == 0
    assert comments.ours == [new, bodies["b c/tpucfg.yaml"], f"{MARKER}\nold\n"]


def test_review_of_another_spec_replaces_nothing(comments: Comments, post: Post) -> None:
    """A file with the marker of another spec, which a program could have written, is no review of this spec."""
    other = marker("a/tpucfg.yaml")
    assert post(f"{other}\nold\n", SPEC="a/tpucfg.yaml").returncode == 0
    for forged in (f"{other}\nall is well\n", "<!-- tpucfg-review: a --><!-- -->\nall is well\n"):
        assert post(forged).returncode == 1
    assert comments.ours == [f"{other}\nold\n", NONE.format(COMMIT[:12])]


def test_only_a_regular_file_of_limited_size_is_posted(
    comments: Comments, post: Post, tmp_path: Path
) -> None:
    """A link, whose target the comment would show, and a file that no comment can contain are no reviews."""
    (tmp_path / "secret.md").write_text(f"{MARKER}\ntoken\n")
    (tmp_path / "comment.md").symlink_to("secret.md")
    assert post(None).returncode == 1
    (tmp_path / "comment.md").unlink()
    assert post(f"{MARKER}\n{'x' * 300_000}\n").returncode == 1
    assert comments.ours == [NONE.format(COMMIT[:12])]
