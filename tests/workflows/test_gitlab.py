"""The documented GitLab jobs, run against a stand-in for GitLab's API."""

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

from loopback import serving_json
from spec_factory import ROOT

MARKER = "<!-- tpucfg-review -->"
pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("jq")),
        reason="curl or jq is not on the PATH, which the job needs",
    ),
]
NOTES = "/api/v4/projects/3/merge_requests/7/notes"
ME, TOKEN = 42, "glpat-" + "t" * 20

COMMIT = "0123456789" * 4


def jobs() -> dict[str, Any]:
    """Return the jobs of the example in the documentation."""
    page = (ROOT / "docs" / "review-ci.md").read_text()
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
        """Add a note; the API lists the newest first."""
        self.notes.insert(0, {"id": 100 + len(self.notes), "body": body, "author": {"id": author}})

    def answer(self, method: str, target: str, headers: Message, body: Any) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        url = urlsplit(target)
        self.calls.append(f"{method} {url.path}")
        if headers["PRIVATE-TOKEN"] != TOKEN:
            return 401, {"message": "401 Unauthorized"}
        if url.path == "/api/v4/user":
            return 200, {"id": ME}
        if method == "GET":
            parameters = {key: int(value[0]) for key, value in parse_qs(url.query).items()}
            start = (parameters["page"] - 1) * parameters["per_page"]
            return 200, self.notes[start : start + parameters["per_page"]]
        if method == "POST":
            self.add(body["body"])
            return 201, self.notes[0]
        note = next(note for note in self.notes if note["id"] == int(url.path.rpartition("/")[2]))
        note["body"] = body["body"]
        return 200, note


@pytest.fixture
def gitlab() -> Iterator[GitLab]:
    """Serve the API of GitLab on the loopback interface."""
    api = GitLab()
    with serving_json(api.answer) as api.url:
        yield api


Post = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=[("sh", "-e"), ("bash", "-eo", "pipefail")], ids=["sh", "bash"])
def post(request: pytest.FixtureRequest, gitlab: GitLab, tmp_path: Path) -> Post:
    """Return a function that runs the script of the second job, in each shell that images have."""
    script = jobs()["comment"]["script"][-1]

    def run(
        body: str | None, token: str = TOKEN, marker: str = MARKER
    ) -> "subprocess.CompletedProcess[str]":
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
            "CI_PROJECT_DIR": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "TPUCFG_TOKEN": token,
            "MARKER": marker,
        }
        return subprocess.run(
            [*request.param, "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.telling
def test_note_is_updated(gitlab: GitLab, post: Post) -> None:
    """The first review creates a note, an equal one writes nothing, and another one replaces it.

    Catches a change of the documented script that bash accepts and sh does not, or a second note for each push.
    """
    for body in ("one", "one", "two"):
        completed = post(f"{MARKER}\n{body}\n")
        assert completed.returncode == 0, completed.stderr
    assert [note["body"] for note in gitlab.notes] == [f"{MARKER}\ntwo\n"]
    assert [call.split()[0] for call in gitlab.calls if not call.startswith("GET")] == [
        "POST",
        "PUT",
    ]


def test_note_is_found_on_a_later_page(gitlab: GitLab, post: Post) -> None:
    """The note is found on any page, and a note of another author with the marker is ignored."""
    gitlab.add(f"{MARKER}\nold")
    gitlab.add(f"{MARKER}\nmine", author=1)
    for number in range(250):
        gitlab.add(f"remark {number}", author=1)
    assert post(f"{MARKER}\nnew\n").returncode == 0
    assert gitlab.notes[-1]["body"] == f"{MARKER}\nnew\n"
    assert gitlab.notes[-2]["body"] == f"{MARKER}\nmine"
    assert len(gitlab.notes) == 252


@pytest.mark.parametrize("left", [None, "", "all is well\n"])
def test_failed_job_replaces_the_last_review(gitlab: GitLab, post: Post, left: str | None) -> None:
    """If the first job leaves no valid review, the note reports that until there is one."""
    for body in (f"{MARKER}\nold\n", left):
        completed = post(body)
        assert completed.returncode == 0, completed.stderr
    (note,) = gitlab.notes
    assert note["body"].startswith(f"{MARKER}\n\n### tpucfg review: failed for 01234567\n\n")
    assert note["body"].endswith(
        "[the pipeline](https://gitlab.com/acme/mnist/-/pipelines/1) for the reason.\n"
    )
    post(f"{MARKER}\nnew\n")
    assert [note["body"] for note in gitlab.notes] == [f"{MARKER}\nnew\n"]


def test_file_name_contains_the_commit() -> None:
    """Both jobs use the same file name, which no file of the commit can have."""
    review = jobs()["review"]
    (path,) = review["artifacts"]["paths"]
    assert "$CI_COMMIT_SHA" in path
    assert review["script"][1].endswith(f' > "{path}"\n')
    assert f"artifact=$CI_PROJECT_DIR/{path} " in jobs()["comment"]["script"][-1]


def test_missing_token_is_no_failure(gitlab: GitLab, post: Post) -> None:
    """Without a token no request is sent, and the job names the artifact."""
    completed = post(f"{MARKER}\nnew\n", token="")
    assert completed.returncode == 0
    assert "artifact of the job review" in completed.stdout
    assert gitlab.calls == []


def test_wrong_token_fails_the_job(post: Post) -> None:
    """The error of the API is printed."""
    completed = post(f"{MARKER}\nnew\n", token="glpat-wrong")  # noqa: S106 - none
    assert completed.returncode != 0
    assert "401" in completed.stderr


@pytest.mark.telling
def test_jobs_with_programs_have_no_token() -> None:
    """The token belongs to an environment that only the last job names, and that job runs nothing of the project.

    Catches a token in a job that runs the merge request's program.
    """
    assert "environment" not in {*jobs()["programs"], *jobs()["review"]}
    assert "--run-program" not in jobs()["review"]["script"][1]
    assert jobs()["comment"]["environment"] == {"name": "tpucfg-review", "action": "access"}
    assert not any("pip" in line or "tpucfg " in line for line in jobs()["comment"]["script"][:-1])


def test_each_spec_has_its_note(gitlab: GitLab, post: Post) -> None:
    """Two projects of one repository have separate notes."""
    for spec in ("a", "b", "a"):
        marker = f"<!-- tpucfg-review: {spec}/tpucfg.yaml -->"
        assert post(f"{marker}\n{len(gitlab.notes)}\n", marker=marker).returncode == 0
    assert sorted(note["body"].split("/")[0][-1] for note in gitlab.notes) == ["a", "b"]


def test_review_of_another_spec_replaces_nothing(gitlab: GitLab, post: Post) -> None:
    """A file with the marker of another spec, which a program could have written, is no review of this spec."""
    other = "<!-- tpucfg-review: a/tpucfg.yaml -->"
    gitlab.add(f"{other}\nold\n")
    post(f"{other}\nall is well\n")
    bodies = [note["body"] for note in gitlab.notes]
    assert bodies[1] == f"{other}\nold\n"
    assert bodies[0].startswith(f"{MARKER}\n\n### tpucfg review: failed for ")


def test_job_with_the_token_has_no_file_of_the_merge_request(post: Post, tmp_path: Path) -> None:
    """It checks out nothing, and a link among its files does not receive the token."""
    assert jobs()["comment"]["variables"]["GIT_STRATEGY"] == "none"
    (tmp_path / "headers").symlink_to("stolen")
    assert post(f"{MARKER}\nnew\n").returncode == 0
    assert not (tmp_path / "stolen").exists()


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_previews_of_an_earlier_job_are_passed(tmp_path: Path, shell: str) -> None:
    """Each file in the folder that no commit can contain is the preview of an environment; others are not read."""
    for folder in (f"tpucfg-previews-{COMMIT}", "tpucfg-previews-", "previews"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "prod.jsonl").touch()
    fake = "tpucfg() { printf '%s\\n' \"$@\"; }\n"
    environment = {
        "PATH": os.environ["PATH"],
        "CI_COMMIT_SHA": COMMIT,
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "base",
    }
    command = [shell, "-e", "-c", fake + jobs()["review"]["script"][1]]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    arguments = (tmp_path / f"tpucfg-review-{COMMIT}.md").read_text().splitlines()
    assert [item for item in arguments if "jsonl" in item] == [
        f"prod=tpucfg-previews-{COMMIT}/prod.jsonl"
    ]
    (declared,) = jobs()["programs"]["artifacts"]["paths"]
    files = [
        declared.replace("$CI_COMMIT_SHA", COMMIT).replace("$REVISION", name)
        for name in ("base", "head")
    ]
    start = arguments.index("--resources") + 1
    assert arguments[start : start + 2] == files
