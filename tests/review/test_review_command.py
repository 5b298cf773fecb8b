"""`tpucfg review` as its user and its workflow run it."""

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

from recorded_previews import FOLDER
from repositories import Repository, project
from spec_factory import ROOT
from tpucfg.cli.app import run
from tpucfg.cli.options import SPEC

LIFTED = ("    protect: true                # Pulumi refuses to delete or replace what holds data\n", "")


def review(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """The comment on what the working tree changes."""
    assert run(["review", "--base", "HEAD", *arguments]) == status
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("replaced", "destructive", "anything"),
    [(("version: 1", "# x\nversion: 1"), 0, 0), ((":1.0", ":1.1"), 0, 3), (LIFTED, 3, 3)],
    ids=["nothing", "image", "protection"],
)
def test_fail_on(
    made: Repository,
    capsys: pytest.CaptureFixture[str],
    replaced: tuple[str, str],
    destructive: int,
    anything: int,
) -> None:
    """The status says what was asked of it and the comment is the same; by default the status is 0."""
    made.edit(replaced)

    comment = review(capsys)
    assert review(capsys, "--fail-on", "destructive", status=destructive) == comment
    assert review(capsys, "--fail-on", "any", status=anything) == comment
    assert review(capsys, "--fail-on", "none") == comment


def test_unknown_is_not_harmless(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the program fails nobody can say that nothing is destroyed, and the status does not say it either."""
    made.edit(("import pulumi\n", "import pulumi\nraise SystemExit(0)\n"), file="stacks/__main__.py")

    assert "SystemExit" in review(capsys)
    review(capsys, "--fail-on", "destructive", status=1)
    made.commit()
    made.edit(("raise SystemExit(0)\n", ""), file="stacks/__main__.py")
    assert "(HEAD)" in review(capsys)


def test_json_says_the_same(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A program gets the counts, the figures, the changes and whether anything is destroyed."""
    made.edit(LIFTED, ("batch_size: 1024", "batch_size: 2048"))

    data = json.loads(review(capsys, "--format", "json"))

    assert (data["is_change"], data["is_destructive"], data["is_known"]) == (True, True, True)
    (prod,) = [it for it in data["environments"] if it["name"] == "prod"]
    assert prod["counts"]["lifted"] == 9
    assert [it["id"] for it in prod["findings"]] == ["TPU094"]
    (row,) = [it for it in data["meaning"]["rungs"] if it["size"] == "v2-32"]
    assert (row["before"]["global batch"], row["after"]["global batch"]) == (4096, 8192)
    assert {it["name"] for it in data["configs"]["changes"]} == {"--batch_size"}
    assert {"text": "every config: global batch size is 2× the previous value", "grave": False} in data["meaning"][
        "remarks"
    ]


def test_json_has_the_documented_keys(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads it finds every key in the documents, and no key there that is not printed."""
    assert made.spec.is_file()
    data = json.loads(review(capsys, "--format", "json"))
    page = (ROOT / "docs" / "review.md").read_text().partition("<!-- keys of the review")[2].split("\n\n")[1]
    rows = dict(line.strip("|").split(" | ", 1) for line in page.splitlines()[2:])

    assert [key for names in rows for key in re.findall(r"`(\w+)`", names)] == [*data]
    for name, inner in (("base", data["base"]), ("environments", data["environments"][0])):
        (said,) = [row for names, row in rows.items() if f"`{name}`" in names]
        assert re.findall(r"`(\w+)`", said) == [*inner]


@pytest.fixture
def fixed(made: Repository) -> Repository:
    """A project whose last commit does not hold, while the working tree does."""
    made.edit(("tuned_on: v2-8", "tuned_on: v2-9"))
    made.commit()
    made.edit(("tuned_on: v2-9", "tuned_on: v2-8"))
    return made


def test_head_is_checked_alone(fixed: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the base does not hold, what head declares is told with what is wrong with it, and as no change."""
    fixed.edit(LIFTED)

    comment = review(capsys)
    data = json.loads(review(capsys, "--format", "json"))

    assert "**prod**: `TPU094` storage.Bucket data-us-central1 is not protected" in comment
    assert "resources of <code>prod</code>: 9 declared, none of them protected" in comment
    assert "to create" not in comment
    assert "what the stack program of `the working tree` declares; what happens to them is not known" in comment
    assert (data["is_destructive"], data["is_known"]) == (False, False)
    (_, prod) = data["environments"]
    assert (prod["source"], len(prod["declared"]), prod["resources"]) == ("head", 9, [])
    assert [it["id"] for it in data["meaning"]["new_warnings"]] == ["TPU041"]
    review(capsys, "--fail-on", "destructive", status=1)


@pytest.mark.usefixtures("fixed")
def test_head_alone_and_its_preview(capsys: pytest.CaptureFixture[str]) -> None:
    """Pulumi compares with what is there, so its word stands beside what is only declared."""
    comment = review(capsys, "--preview", f"dev={FOLDER / 'protection-lifted.jsonl'}")

    assert "**The specs were not compared**: but for what Pulumi previewed" in comment
    assert "| `dev` | 0 | 1 | 0 | 0 | **9** | 0 | ? |" in comment
    assert "| `prod` |" not in comment
    assert "Resources of `dev`: by Pulumi's preview. Resources of `prod`: what the stack program of" in comment


def test_head_alone_without_its_program(fixed: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """That it is gone is told whatever the base's spec was, and so is whose resources are shown."""
    fixed.git("rm", "-q", "stacks/__main__.py")

    comment = review(capsys)

    assert "stack program `stacks/__main__.py` removed" in comment
    assert "the stack program that tpucfg carries, as `the working tree` has none of its own, declares" in comment


def test_head_alone_that_fails(fixed: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that fails is told like any other."""
    fixed.edit(("import pulumi\n", "import pulumi\n1 / 0\n"), file="stacks/__main__.py")

    assert "**dev, prod**: what happens to its resources is not known: the stack program failed" in review(capsys)


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_preview_takes_the_programs_place(made: Repository, capsys: pytest.CaptureFixture[str], form: str) -> None:
    """The section of an environment comes from Pulumi's preview where there is one, and the foot says so."""
    made.edit((":1.0", ":1.1"))
    lifted = FOLDER / f"protection-lifted.{form}"

    comment = review(capsys, "--preview", f"dev={lifted}")

    assert "**dev**: `storage.Bucket`" in comment
    assert "protected no longer" in comment
    assert "Resources of `dev`: by Pulumi's preview. Resources of `prod`: by the stack programs" in comment
    review(capsys, "--preview", f"dev={lifted}", "--fail-on", "destructive", status=3)


def test_failed_preview_is_told(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A preview that failed leaves its error in the comment; what it says of no change is not believed."""
    failed = FOLDER / "config-error.jsonl"

    comment = review(capsys, "--preview", f"dev={failed}")

    assert "nothing changes, as far as is known" in comment
    assert "| `dev` | ? |" in comment
    assert "what happens to its resources is not known" in comment
    review(capsys, "--preview", f"dev={failed}", "--fail-on", "destructive", status=1)
    assert made.spec.is_file()


def test_refused_move_is_told_in_full(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the engine stopped at its first refusal, the program tells the rest of the change, and both are named."""
    made.edit(("region: us-central1          #", "region: europe-west4         #"))
    failed = FOLDER / "protected-replacement.jsonl"

    comment = review(capsys, "--preview", f"dev={failed}")

    assert "what the stack program declares is shown, as pulumi preview failed (protected-replacement.jsonl)" in comment
    assert 'resource "tpu-agent-on-data-us-central1" cannot be deleted' in comment
    assert "**delete** `storage.Bucket` `data-us-central1`" in comment
    assert str(FOLDER) not in comment


def test_stack_that_does_not_exist_is_no_alarm(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the first `pulumi up` the program tells what changes, and the foot says that there is nothing yet."""
    (made.folder / "dev.jsonl").write_text("error: no stack named 'dev' found\n")

    comment = review(capsys, "--preview", "dev=dev.jsonl", "--fail-on", "destructive")

    assert "### tpucfg review: nothing changes\n" in comment
    assert "There is no stack yet of `dev`." in comment


def test_new_member_is_told(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Who gets access to what is there stands among the cautions, with the role and without a person's name."""
    file = made.folder / "stacks" / "Pulumi.dev.yaml"
    file.write_text(f'{file.read_text()}  mnist:bucketMembers: ["user:ada@example.com", "group:team@example.com"]\n')

    comment = review(capsys)

    assert "gives `roles/storage.objectUser` to `group:team@example.com`" in comment
    assert "gives `roles/storage.objectUser` to `user:[redacted]@example.com`" in comment
    assert "+ role: roles/storage.objectUser" in comment
    assert "ada" not in comment


def test_finding_of_every_environment_is_one_line(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong everywhere is said once, without the name that each environment's own finding has."""
    made.edit(("location=settings.region.upper()", 'location="EU"'), file="stacks/bucket.py")

    comment = review(capsys)

    said = "storage.Bucket data-us-central1 is in EU, and the TPUs are in us-central1"
    assert f"> - **dev, prod**: `TPU090` {said}\n" in comment
    assert comment.count("TPU090") == 1


def test_long_preview_is_left_out_as_a_whole(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Thousands of changes are counted, the fold is named with its length, and JSON has them all."""
    urn = "urn:pulumi:dev::mnist::gcp:storage/bucket:Bucket::data-"
    sides = {it: {"custom": True, "inputs": {"labels": {f"key-{n}": it for n in range(9)}}} for it in ("old", "new")}
    steps = [{"resourcePreEvent": {"metadata": {"op": "update", "urn": f"{urn}{n}", **sides}}} for n in range(2000)]
    text = "\n".join(json.dumps(event) for event in [*steps, {"summaryEvent": {}}])
    (made.folder / "dev.jsonl").write_text(text)

    comment = review(capsys, "--preview", "dev=dev.jsonl")

    assert "### tpucfg review: 2,000 resources updated\n" in comment
    assert "_Left out for length: the resources of dev (" in comment
    assert "`tpucfg review --format json`" in comment
    (dev, _) = json.loads(review(capsys, "--preview", "dev=dev.jsonl", "--format", "json"))["environments"]
    assert len(dev["resources"]) == 2000


def test_policies_are_told(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """What a policy pack refuses stands among the cautions."""
    comment = review(capsys, "--preview", f"dev={FOLDER / 'policy.jsonl'}")

    assert re.search(r"> - \*\*dev\*\*: the mandatory policy `", comment)
    assert made.spec.is_file()


@pytest.mark.parametrize("given", ["dev", "=x", "../x=x.json", "dev="])
def test_preview_that_is_none(made: Repository, capsys: pytest.CaptureFixture[str], given: str) -> None:
    """A preview without an environment or a file is wrong use; one that cannot be opened is said with its name."""
    (made.folder / "x.json").write_text("{}")

    assert review(capsys, "--preview", given, status=2) == ""
    assert run(["review", "--base", "HEAD", "--preview", "dev=gone.json"]) == 1
    assert "gone.json: No such file or directory" in capsys.readouterr().err


def test_what_came_to_base_meanwhile_is_not_taken_back(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A change is compared with the commit where it left base."""
    made.git("switch", "--quiet", "--create", "topic")
    made.edit((":1.0", ":1.1"))
    made.commit()
    made.git("switch", "--quiet", "main")
    made.edit(LIFTED)
    made.commit()

    assert run(["review", "--base", "main", "--head", "topic", "--fail-on", "destructive"]) == 0
    assert "protected" not in capsys.readouterr().out


def test_dropped_folds_are_named(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A fold that does not fit leaves a line with its name and its length, and the others stay."""
    flags = "".join(f"    flag_{number}: {'x' * 300}\n" for number in range(190))
    made.edit(
        ("    data_dir: ${bucket}/data\n", f"    data_dir: ${{bucket}}/data\n{flags}"),
        ("train_steps: 4000", "train_steps: 2000"),
    )
    made.commit()
    made.edit(("x" * 300, "y" * 300))
    made.edit(("train_steps: 2000", "train_steps: 4000"))

    comment = review(capsys)

    assert re.search(r"_Left out for length: the configs of every config \(\d+ lines, [\d,]+ characters\)\._", comment)
    assert "+ --train_steps: 4000" in comment
    assert len(comment.encode()) < 65_536


def test_bytes_are_the_same(made: Repository) -> None:
    """Two processes with different hash seeds, in different time zones and folders, print the same bytes."""
    made.edit(LIFTED, (":1.0", ":1.1"), ("v2-128]", "v2-128, v2-256]"))
    printed = [
        subprocess.run(
            [sys.executable, "-m", "tpucfg", "review", "--base", "HEAD", *spec],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "compiler"), "PYTHONHASHSEED": seed, "TZ": zone},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone, folder, spec in (
            ("1", "UTC", made.folder, []),
            ("2", "Asia/Tokyo", made.folder / "stacks", ["--spec", "../tpucfg.yaml"]),
        )
    ]

    assert printed[0] == printed[1]
    assert b"pulumi" not in printed[0].splitlines()[0]


def test_without_pulumis_packages(made: Repository, tmp_path: Path) -> None:
    """Without them the configs are reviewed all the same, and the comment says what to install."""
    made.edit((":1.0", ":1.1"))
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['pulumi'] = None\n")
    ended = subprocess.run(
        [sys.executable, "-m", "tpucfg", "review", "--base", "HEAD"],
        cwd=made.folder,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT / 'compiler'}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "pip install 'tpucfg[infra]'" in ended.stdout
    assert "| `dev` | ? | ? | ? | ? | ? | ? | 3 changed |" in ended.stdout
    assert "image changed from" in ended.stdout
    assert not ended.stderr


@pytest.mark.parametrize(
    "made", [("--target", target) for target in ("vertex-ai", "cloud-tpu", "gke")], indirect=True, ids=" ".join
)
def test_secret_variables_are_blanked_out(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever a service keeps a container's variables, one that is called a key is not shown, and others are."""
    made.edit(
        ("    model_dir: ${job_dir}\n", "    model_dir: ${job_dir}\n  env: {WANDB_API_KEY: hunter1, LOG: plain}\n")
    )
    made.commit()
    made.edit(("hunter1", "hunter2"), ("plain", "loud"))

    for form in ("markdown", "json"):
        comment = review(capsys, "--format", form)
        assert "hunter" not in comment
        assert "WANDB_API_KEY" in comment
        assert "loud" in comment


def test_secret_beside_a_mistake_is_blanked_out(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A finding shows its line of the spec, but for what stands there under such a name."""
    made.edit(
        ("    model_dir: ${job_dir}\n", "    model_dir: ${job_dir}\n  env: {api_key: hunter2, api_key: hunter3}\n")
    )

    comment = review(capsys, status=1)

    assert "api_key: [secret]" in comment
    assert "hunter" not in comment


def test_program_prints_beside_the_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What a stack program prints goes to stderr: the comment begins with its marker."""
    made = project(tmp_path / "p")
    monkeypatch.chdir(made.folder)
    capfd.readouterr()
    made.edit(("import pulumi\n", "import pulumi\nprint('from the program')\n"), file="stacks/__main__.py")

    assert run(["review", "--base", "HEAD"]) == 0
    printed = capfd.readouterr()
    assert printed.out.startswith("<!-- tpucfg-review -->\n")
    assert "from the program" in printed.err


@pytest.mark.parametrize(
    "first",
    [
        "import os\nos._exit(0)\n",
        "import tpucfg.review.markdown.comment as it\nit.comment = lambda _: 'all is well'\nraise SystemExit(0)\n",
    ],
    ids=["silences", "forges"],
)
def test_program_does_not_speak_for_the_review(
    made: Repository, capsys: pytest.CaptureFixture[str], first: str
) -> None:
    """Ending the process, or replacing what is imported there, leaves a comment that says what is not known."""
    made.edit(("import pulumi\n", f"import pulumi\n{first}"), file="stacks/__main__.py")

    comment = review(capsys)

    assert comment.startswith("<!-- tpucfg-review -->\n")
    assert "what happens to its resources is not known: the stack program" in comment
    review(capsys, "--fail-on", "destructive", status=1)


def test_spec_elsewhere_is_named(
    tmp_path: Path, made: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Marker and heading have its path in the repository, from wherever it is asked; no path ends the marker."""
    folder = made.folder / "a--> b"
    folder.mkdir()
    (folder / "tpucfg.yaml").write_text(made.spec.read_text())
    shutil.copytree(made.folder / "stacks", folder / "stacks")
    made.commit()
    capsys.readouterr()

    said = []
    for location, spec in (
        (made.folder, "a--> b/tpucfg.yaml"),
        (folder, "tpucfg.yaml"),
        (tmp_path, f"{folder}/tpucfg.yaml"),
    ):
        monkeypatch.chdir(location)
        assert run(["review", "--base", "HEAD", "--spec", spec]) == 0
        said.append(capsys.readouterr().out)

    assert len({*said}) == 1
    assert said[0].splitlines()[0] == "<!-- tpucfg-review: a%2D%2D%3E%20b/tpucfg.yaml -->"
    assert said[0].splitlines()[2] == "### tpucfg review of `a--> b/tpucfg.yaml`: nothing changes"


def _delete_program(made: Repository) -> None:
    made.git("rm", "-q", "stacks/__main__.py")


def _delete_project(made: Repository) -> None:
    made.git("rm", "-q", "-r", "stacks", "Pulumi.yaml")


def _rename_project(made: Repository) -> None:
    made.edit(("name: mnist", "name: digits"), file="Pulumi.yaml")
    for path in (made.folder / "stacks").glob("Pulumi.*.yaml"):
        path.write_text(path.read_text().replace("mnist:", "digits:"))


def _point_elsewhere(made: Repository) -> None:
    (made.folder / "other.yaml").write_text(made.spec.read_text())
    made.edit(("spec: tpucfg.yaml", "spec: other.yaml"), file="stacks/Pulumi.prod.yaml")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_delete_program, ("stack program `stacks/__main__.py` removed", "which has none, by the one that tpucfg")),
        (_delete_project, ("stack program `stacks/__main__.py` removed", "which has none, by the one that tpucfg")),
        (_rename_project, ("Pulumi project renamed from `mnist` to `digits`: the next `pulumi up` starts with",)),
        (
            _point_elsewhere,
            (
                "**prod**: stack reads `other.yaml` instead of `the spec under review`",
                "the stack prod reads other.yaml, which is not looked at here: give it with --spec other.yaml",
            ),
        ),
    ],
)
def test_what_no_resource_tells_is_a_caution(
    made: Repository, capsys: pytest.CaptureFixture[str], edit: Callable[[Repository], None], said: tuple[str, ...]
) -> None:
    """A lost program, a project of another name and a stack with another spec are told, and are changes."""
    edit(made)

    comment = review(capsys, "--fail-on", "destructive", status=3)

    assert "[!CAUTION]" in comment
    assert "nothing changes" not in comment
    assert [it for it in said if it not in comment] == []
    review(capsys, "--fail-on", "any", status=3)


def test_access_beside_creations_is_no_new_environment(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """Who gets access to an environment that is there is told, also where the change makes a bucket besides."""
    more = '\nimport pulumi_gcp\npulumi_gcp.storage.Bucket("more", location="US", project="p", name="more-1")\n'
    program = made.folder / "stacks" / "__main__.py"
    program.write_text(program.read_text() + more)
    file = made.folder / "stacks" / "Pulumi.dev.yaml"
    file.write_text(f'{file.read_text()}  mnist:bucketMembers: ["user:ada@example.com"]\n')

    comment = review(capsys)

    assert "gives `roles/storage.objectUser` to `user:[redacted]@example.com`" in comment


def test_bucket_of_a_fixed_name_does_not_move(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A region that moves under a bucket's own name ends in Google's refusal, which is told with the way out."""
    made.edit(("protect: true ", "bucket: my-own\n    protect: true "))
    made.commit()
    made.edit(
        ("my-project-prod\n    region: us-central1", "my-project-prod\n    region: europe-west4"),
        ("[v2-8, v2-32, v2-128]", "[v2-8, v2-32]"),
    )

    comment = review(capsys)

    assert "the bucket `my-own` exists, and a bucket never changes its region" in comment
    assert "give `environments.prod.bucket` another name" in comment


def test_preview_of_no_environment_is_a_line(made: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    """A preview too many, or one that failed of an environment that goes, takes nobody's comment away."""
    (made.folder / "x.json").write_text("error: no stack named 'x' found\n")
    start = made.spec.read_text().index("  dev:\n")
    made.spec.write_text(
        made.spec.read_text()[:start] + made.spec.read_text()[made.spec.read_text().index("  prod:\n") :]
    )

    comment = review(capsys, "--preview", "nowhere=x.json", "--preview", "dev=x.json")

    assert "The preview of nowhere is not shown: neither side has an environment of that name." in comment
    assert "The preview of dev failed, and this change takes that environment out of the spec." in comment
    assert "not known" not in comment


class _Elements(HTMLParser):
    """The elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found = set[str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the interface
        self.found.add(tag)


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "comments").glob("*.md")), ids=lambda path: path.stem)
def test_renderer_finds_no_other_elements(path: Path) -> None:
    """What a renderer of GitHub's Markdown makes of a comment holds the layout's own elements and no other."""
    page = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(path.read_text())

    assert _Elements(page).found <= {
        *("h3", "p", "em", "strong", "code", "pre", "ul", "li", "blockquote"),
        *("table", "thead", "tbody", "tr", "th", "td", "details", "summary"),
    }


def test_spec_is_found_from_a_folder_below(made: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec that is not where the command looks is said with the way to name it."""
    monkeypatch.chdir(made.folder / "stacks")

    assert run(["review", "--base", "HEAD"]) == 1
    assert SPEC.name == "tpucfg.yaml"
