"""The GitLab job that the documents show, against a stand-in of GitLab's API."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from loopback import answering
from spec_factory import ROOT

MARKER = "<!-- tpucfg-review -->"
pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("jq")), reason="curl or jq is not on the PATH, which the job needs"
)
NOTES = "/api/v4/projects/3/merge_requests/7/notes"
ME, TOKEN = 42, "glpat-" + "t" * 20

COMMIT = "0123456789" * 4


def jobs() -> dict[str, Any]:
    """The block in the documents."""
    page = (ROOT / "docs" / "review.md").read_text()
    block = page.split("<!-- gitlab:", 1)[1].split("```yaml\n", 1)[1].split("```", 1)[0]
    loaded: dict[str, Any] = yaml.safe_load(block)
    return loaded


class GitLab:
    """The notes of merge request 7: https://docs.gitlab.com/api/notes/."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.url = ""

    def add(self, body: str, author: int = ME) -> None:
        """Somebody writes one; the newest comes first in the list."""
        self.notes.insert(0, {"id": 100 + len(self.notes), "body": body, "author": {"id": author}})

    def answer(self, method: str, target: str, headers: Message, body: Any) -> tuple[int, Any]:
        """Status and answer."""
        url = urlsplit(target)
        self.calls.append(f"{method} {url.path}")
        if headers["PRIVATE-TOKEN"] != TOKEN:
            return 401, {"message": "401 Unauthorized"}
        if url.path == "/api/v4/user":
            return 200, {"id": ME}
        if method == "GET":
            asked = {key: int(value[0]) for key, value in parse_qs(url.query).items()}
            start = (asked["page"] - 1) * asked["per_page"]
            return 200, self.notes[start : start + asked["per_page"]]
        if method == "POST":
            self.add(body["body"])
            return 201, self.notes[0]
        note = next(note for note in self.notes if note["id"] == int(url.path.rpartition("/")[2]))
        note["body"] = body["body"]
        return 200, note


@pytest.fixture
def gitlab() -> Iterator[GitLab]:
    """A GitLab on the loopback."""
    made = GitLab()
    with answering(made.answer) as made.url:
        yield made


Post = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=[("sh", "-e"), ("bash", "-eo", "pipefail")], ids=["sh", "bash"])
def post(request: pytest.FixtureRequest, gitlab: GitLab, tmp_path: Path) -> Post:
    """Runs the job's last command, which is the script, in the shells that images have."""
    script = jobs()["comment"]["script"][-1]

    def run(body: str | None, token: str = TOKEN) -> "subprocess.CompletedProcess[str]":
        path = tmp_path / f"tpucfg-review-{COMMIT}.md"
        path.unlink(missing_ok=True)
        if body is not None:
            path.write_text(body)
        environment = {
            "PATH": os.environ["PATH"],
            "CI_API_V4_URL": f"{gitlab.url}/api/v4",
            "CI_PROJECT_ID": "3",
            "CI_COMMIT_SHA": COMMIT,
            "CI_COMMIT_SHORT_SHA": COMMIT[:8],
            "CI_PIPELINE_URL": "https://gitlab.com/acme/mnist/-/pipelines/1",
            "CI_MERGE_REQUEST_IID": "7",
            "TPUCFG_TOKEN": token,
        }
        return subprocess.run(
            [*request.param, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    return run


def test_one_note_that_is_brought_up_to_date(gitlab: GitLab, post: Post) -> None:
    """The first review is a note, the same again writes nothing, another one takes its place."""
    for body in ("one", "one", "two"):
        done = post(f"{MARKER}\n{body}\n")
        assert done.returncode == 0, done.stderr
    assert [note["body"] for note in gitlab.notes] == [f"{MARKER}\ntwo\n"]
    assert [call.split()[0] for call in gitlab.calls if not call.startswith("GET")] == ["POST", "PUT"]


def test_note_is_found_among_those_of_others(gitlab: GitLab, post: Post) -> None:
    """On a later page, and not the one that somebody else marked."""
    gitlab.add(f"{MARKER}\nold")
    gitlab.add(f"{MARKER}\nmine", author=1)
    for number in range(250):
        gitlab.add(f"remark {number}", author=1)
    assert post(f"{MARKER}\nnew\n").returncode == 0
    assert gitlab.notes[-1]["body"] == f"{MARKER}\nnew\n"
    assert gitlab.notes[-2]["body"] == f"{MARKER}\nmine"
    assert len(gitlab.notes) == 252


@pytest.mark.parametrize("left", [None, "", "all is well\n"])
def test_failure_takes_the_last_reviews_place(gitlab: GitLab, post: Post, left: str | None) -> None:
    """A job that failed leaves nothing, or what is no review; the note says so, until there is one again."""
    for body in (f"{MARKER}\nold\n", left):
        done = post(body)
        assert done.returncode == 0, done.stderr
    (note,) = gitlab.notes
    assert note["body"].startswith(f"{MARKER}\n\n### tpucfg review: failed for 01234567\n\n")
    assert note["body"].endswith("[the pipeline](https://gitlab.com/acme/mnist/-/pipelines/1) for the reason.\n")
    post(f"{MARKER}\nnew\n")
    assert [note["body"] for note in gitlab.notes] == [f"{MARKER}\nnew\n"]


def test_file_of_the_review_is_one_name() -> None:
    """What the first job writes is what it keeps, and a name that no file of the commit can have."""
    review = jobs()["review"]
    (path,) = review["artifacts"]["paths"]
    assert "$CI_COMMIT_SHA" in path
    assert review["script"][1].endswith(f' > "{path}"')
    assert f"review={path}\n" in jobs()["comment"]["script"][-1]


def test_fork_has_its_review_as_an_artifact(gitlab: GitLab, post: Post) -> None:
    """Without a token nothing is asked, and nothing fails."""
    done = post(f"{MARKER}\nnew\n", token="")
    assert done.returncode == 0
    assert "artifact of the job review" in done.stdout
    assert gitlab.calls == []


def test_refusal_fails_the_job(post: Post) -> None:
    """A wrong token is told."""
    done = post(f"{MARKER}\nnew\n", token="glpat-wrong")  # noqa: S106 - none
    assert done.returncode != 0
    assert "401" in done.stderr


def test_token_is_where_the_stack_program_is_not() -> None:
    """The job that runs the program has no environment, by which the token is given out."""
    assert "environment" not in jobs()["review"]
    assert jobs()["comment"]["environment"] == {"name": "tpucfg-review", "action": "access"}
    assert not any("pip" in line or "tpucfg " in line for line in jobs()["comment"]["script"][:-1])


def test_each_spec_has_its_note(gitlab: GitLab, post: Post) -> None:
    """Two projects of one repository do not write over each other."""
    for spec in ("a", "b", "a"):
        assert post(f"<!-- tpucfg-review: {spec}/tpucfg.yaml -->\n{len(gitlab.notes)}\n").returncode == 0
    assert sorted(note["body"].split("/")[0][-1] for note in gitlab.notes) == ["a", "b"]
