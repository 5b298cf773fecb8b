"""What nobody writes by mistake: in each place of a spec it is refused there, or stays the text that it is."""

import json
from typing import Any, Final

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from spec_factory import CATALOG, configs, ids, loaded, planned, spec
from tpucfg.findings import RULES
from tpucfg.render.pipeline import compile_project
from tpucfg.spec.parse import parse_project
from tpucfg.spec.placeholders import PLACEHOLDERS, fill_placeholders
from tpucfg.text_format import lines
from tpucfg.yamldoc.reader import read_bytes, read_text

NAMES: Final = (
    *("../../x", "/etc/passwd", "..", ".", "-rf", "--config=x", "$(id)", "`id`", "${IFS}x", "; id", "a b", "a|b", ">x"),
    *("{{7*7}}", "{% x %}", "!!python/object:os.system", "%s%n", "<script>", "::error::x", "a\\b", "~root", "*", "?"),
    *(
        "é",
        "日本",
        "😀",
        "²",
        "١",
        "\u202ea",
        "a\u200b",
        "A" * 300,
        "a" * 70_000,
        "",
        " ",
        "a\n",
        "\ta",
        "con:",
        "nul.",
    ),
)
"""None of them is a name, whatever it is the name of."""
PLACES: Final[dict[str, Any]] = {
    "name": lambda text: {"name": text},
    "environments": lambda text: {"environments": {text: {"project": "my-project-dev", "region": "us-central1"}}},
    "project": lambda text: {"environments__dev__project": text},
    "region": lambda text: {"environments__dev__region": text},
    "zone": lambda text: {"environments__dev__zones": {"v2-8": text}},
    "bucket": lambda text: {"environments__dev__bucket": text},
    "label": lambda text: {"environments__dev__labels": {text: "a"}},
    "context": lambda text: {"environments__dev__kube_context": text, "target": "gke", "sizes": ["v5litepod-4"]},
    "size": lambda text: {"sizes": [text]},
    "target": lambda text: {"target": text},
    "flag": lambda text: {"trainer__args": {text: 1}},
    "variable": lambda text: {"trainer__env": {text: "1"}},
    "figure": lambda text: {"training__steps": {text: 1}},
    "account": lambda text: {"targets": {"vertex-ai": {"service_account": text}}},
    "namespace": lambda text: {"targets": {"gke": {"namespace": text}}, "target": "gke", "sizes": ["v5litepod-4"]},
    "reservation": lambda text: {"targets": {"vertex-ai": {"reservation": text}}},
}
"""Where a text becomes a name, a path or an option of something."""
ALSO_NAMES: Final = {
    ("context", "con:"),
    ("reservation", "A" * 300),
    *((location, "nul.") for location in ("context", "flag", "figure", "reservation")),
}
"""What a place takes all the same, as colons, dots or capitals are letters there, and it becomes no path."""


@pytest.mark.parametrize("location", PLACES)
def test_no_name_is_a_path_an_option_or_a_command(location: str) -> None:
    """Each is refused, by a finding that says where."""
    for text in NAMES:
        if (location, text) in ALSO_NAMES:
            continue
        project, found = loaded(spec(**PLACES[location](text)))
        found = compile_project(project, CATALOG, earlier_findings=found).findings if project else found
        refused = [finding for finding in found if finding.level == "error"]
        assert refused, text
        assert all(finding.location.line > 1 and finding.help for finding in refused), text


@pytest.mark.parametrize("name", ["con", "nul", "aux", "prn", "com1", "id", "null-1", "yes-1", "true-1"])
def test_a_name_that_means_something_elsewhere(name: str) -> None:
    """What another system keeps for itself, or YAML reads as something else, is a name like any other."""
    (config,) = configs(spec(name=name, sizes=["v2-8"]))
    assert f"jobs/{name}/v2-8" in yaml.safe_load(config.text)["baseOutputDirectory"]["outputUriPrefix"]


@pytest.mark.parametrize("target", ["vertex-ai", "gke"])
@pytest.mark.parametrize("text", [text for text in NAMES if "${" not in text and len(text) < 8_192])
def test_a_text_stays_what_it_is(text: str, target: str) -> None:
    """In an argument nothing is a path, an option, a command or a template: the config has it to the letter."""
    size = "v2-8" if target == "vertex-ai" else "v5litepod-4"
    figures = {"training": {"tuned_on": size, "batch_size": 1024, "train_steps": 4000}}
    (config,) = configs(spec(target=target, sizes=[size], trainer__args={"a": text}, **figures))
    read = json.dumps(yaml.safe_load(config.text))
    wanted = f"--a={text}" if target == "vertex-ai" else f"--a={text}".replace("$(", "$$(")
    assert json.dumps(wanted) in read


TEXT: Final = json.dumps(spec(), indent=1)
BLOCK: Final = str(yaml.safe_dump(spec(), sort_keys=False))
WRITTEN: Final[dict[str, tuple[bytes, str | None]]] = {
    "line feeds of another system": (BLOCK.replace("\n", "\r\n").encode(), None),
    "line feeds of an old one": (BLOCK.replace("\n", "\r").encode(), None),
    "a byte order mark": (b"\xef\xbb\xbf" + BLOCK.encode(), None),
    "two byte order marks": (b"\xef\xbb\xbf" * 2 + BLOCK.encode(), "TPU011"),
    "UTF-16": (BLOCK.encode("utf-16"), "TPU001"),
    "UTF-32": (BLOCK.encode("utf-32"), "TPU001"),
    "no UTF-8": (BLOCK.encode().replace(b"mnist", b"mn\xefst"), "TPU001"),
    "more bytes than a character has": (BLOCK.encode().replace(b"mnist", b"\xc0\xaemnist"), "TPU001"),
    "a surrogate": (BLOCK.encode().replace(b"mnist", b"\xed\xa0\x80"), "TPU001"),
    "an escaped surrogate": (TEXT.encode().replace(b"mnist", b"\\ud800"), "TPU002"),
    "NUL": (BLOCK.encode().replace(b"mnist", b"mn\0ist"), "TPU002"),
    "an escaped NUL": (TEXT.encode().replace(b"mnist", b"mn\\u0000ist"), "TPU011"),
    "a bell": (BLOCK.encode().replace(b"mnist", b"mn\x07ist"), "TPU002"),
    "an escape sequence": (BLOCK.encode().replace(b"mnist", b"\x1b[2J"), "TPU002"),
    "a control character of two bytes": (BLOCK.encode().replace(b"mnist", "\x9b2J".encode()), "TPU002"),
    "a tab as indent": (BLOCK.replace("  project", "\tproject").encode(), "TPU002"),
    "tabs between JSON": (json.dumps(spec(), indent="\t").encode(), None),
    "a line separator": (BLOCK.replace("mnist", "mn\u2028ist").encode(), "TPU011"),
    "the next line": (BLOCK.replace("mnist", "mn\x85ist").encode(), "TPU011"),
    "a number beyond 64 bits": (BLOCK.replace("4000", str(2**64)).encode(), "TPU007"),
    "a number beyond all bounds": (BLOCK.replace("4000", "9" * 400).encode(), "TPU006"),
    "a fraction beyond all bounds": (BLOCK.replace("4000", "1e400").encode(), "TPU006"),
    "a number that is none": (BLOCK.replace("4000", ".nan").encode(), "TPU006"),
    "an object of Python": (BLOCK.replace("mnist", "!!python/object/apply:os.system [id]", 1).encode(), "TPU011"),
    "a name of Python": (BLOCK.replace("mnist", "!!python/name:os.system", 1).encode(), "TPU011"),
    "an include": (BLOCK.replace("mnist", "!include /etc/passwd", 1).encode(), "TPU011"),
    "a template": (BLOCK.replace("mnist", "{{ 7*7 }}", 1).encode(), "TPU011"),
    "a statement": (BLOCK.replace("mnist", "{% x %}", 1).encode(), "TPU002"),
    "a merge key": (BLOCK.encode() + b"<<: {version: 2}\n", "TPU011"),
    "a value that holds itself": (b"a: &a [*a]\n", "TPU011"),
    "aliases of aliases": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (at + 1, at + 1, b",".join([b"*%c" % at] * 9)) for at in range(ord("a"), ord("j"))
        ),
        "TPU010",
    ),
    "nested without end": (b"a: " + b"[" * 100_000, "TPU010"),
    "mappings without end": (b"{a: " * 100_000, "TPU010"),
    "dashes without end": (b"- " * 100_000, "TPU010"),
    "10 MB in one line": (b"a: " + b"x" * 10_000_000, "TPU010"),
    "10 MB of lines": (b"a: 1\n" * 2_000_000, "TPU010"),
    "two documents": (BLOCK.encode() + b"---\n" + BLOCK.encode(), "TPU011"),
}
"""How a file may be written, and the id of what is said first; None where it is as good as any other."""


@pytest.mark.parametrize(("content", "said"), WRITTEN.values(), ids=WRITTEN)
def test_how_a_file_is_written(content: bytes, said: str | None) -> None:
    """It is read as it is meant, or refused with a place and a help, in no time."""
    document = read_bytes(content, "tpucfg.yaml")
    found = parse_project(document).findings
    assert ids(found)[:1] == ([said] if said else [])
    assert all(finding.location.line >= 1 and finding.help for finding in found)


SIGNS: Final = st.sampled_from(
    [
        *"\t\r\n :{}[]'\"|>#%@,-&*!?<=~",
        *("- ", ": ", "&a ", "*a", "!!x ", "<<", "---\n", "...", "a", "é", "1", "\0", "\ufeff", "\u2028", "\ud800"),
        *("\\u", "\\ud800", "${", "{%", "0x", "1e9"),
    ]
)


@given(st.text() | st.lists(SIGNS, max_size=40).map("".join))
@example("{a: 1,\n 2 b")
@example("'")
@example("a: b\n - - x: y")
def test_any_text_is_a_document_or_a_finding(text: str) -> None:
    """Whatever it is, nothing is raised; each finding is at a place of the text; and read again it is the same."""
    document = read_text(text, "a.yaml")
    assert document.root is not None or document.findings
    rows = lines(document.text)
    for finding in document.findings:
        line, column = finding.location[1:3]
        assert finding.id in RULES
        assert 1 <= line <= len(rows)
        assert 1 <= column <= len(rows[line - 1]) + 1
    assert ids(read_text(text, "a.yaml").findings) == ids(document.findings)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_document_or_a_finding(content: bytes) -> None:
    """The same for a file's bytes."""
    document = read_bytes(content, "a.yaml")
    assert document.root is not None or document.findings


PIECES: Final = st.lists(
    st.sampled_from(["$", "{", "}", "$${", "${", " ", *(f"${{{name}}}" for name in PLACEHOLDERS)]), max_size=10
)


@given(PIECES.map("".join))
def test_a_placeholder_is_filled_in_or_refused(text: str) -> None:
    """What is not refused can be filled in; what is refused would have been lost."""
    data = spec(trainer__args={"a": f"x{text}"}, sizes=["v2-8"])
    project, found = loaded(data)
    if project is None:
        assert set(ids(found)) == {"TPU009"}
        return
    (job,) = planned(data).jobs
    values = {"project": "my-project-dev", "name": "mnist", "env": "dev", "region": "us-central1", "size": "v2-8"}
    values |= {
        "bucket": f"gs://{job.bucket}",
        "job_dir": f"gs://{job.bucket}/jobs/mnist/v2-8",
        "cores": "8",
        "hosts": "1",
    }
    assert job.args[0] == f"--a=x{fill_placeholders(text, values)}"


@given(st.text(st.sampled_from("${}a ")) | st.text())
def test_what_is_escaped_stays(text: str) -> None:
    """Any text can be written: with `$${` for `${` it comes out as it went in."""
    assert fill_placeholders(text.replace("${", "$${"), dict.fromkeys(PLACEHOLDERS, "lost")) == text
