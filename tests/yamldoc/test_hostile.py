"""Hostile input is refused, or stays plain text, in every section of a spec."""

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
from tpucfg.text_format import split_lines
from tpucfg.yamldoc.reader import read_bytes, read_text

HOSTILE_NAMES: Final = (
    *(
        "../../x",
        "/etc/passwd",
        "..",
        ".",
        "-rf",
        "--config=x",
        "$(id)",
        "`id`",
        "${IFS}x",
        "; id",
        "a b",
        "a|b",
        ">x",
    ),
    *(
        "{{7*7}}",
        "{% x %}",
        "!!python/object:os.system",
        "%s%n",
        "<script>",
        "::error::x",
        "a\\b",
        "~root",
        "*",
        "?",
    ),
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
"""Texts that no section accepts as a name, apart from TOLERATED."""
NAMED_THINGS: Final[dict[str, Any]] = {
    "name": lambda text: {"name": text},
    "environments": lambda text: {
        "environments": {text: {"project": "my-project-dev", "region": "us-central1"}}
    },
    "project": lambda text: {"environments__dev__project": text},
    "region": lambda text: {"environments__dev__region": text},
    "zone": lambda text: {"environments__dev__zones": {"v2-8": text}},
    "bucket": lambda text: {"environments__dev__bucket": text},
    "label": lambda text: {"environments__dev__labels": {text: "a"}},
    "context": lambda text: {
        "environments__dev__kube_context": text,
        "target": "gke",
        "sizes": ["v5litepod-4"],
    },
    "size": lambda text: {"sizes": [text]},
    "target": lambda text: {"target": text},
    "flag": lambda text: {"trainer__args": {text: 1}},
    "variable": lambda text: {"trainer__env": {text: "1"}},
    "setting": lambda text: {"training__steps": {text: 1}},
    "account": lambda text: {"targets": {"vertex-ai": {"service_account": text}}},
    "namespace": lambda text: {
        "targets": {"gke": {"namespace": text}},
        "target": "gke",
        "sizes": ["v5litepod-4"],
    },
    "reservation": lambda text: {"capacity": {"reservation": text}},
}
"""The change to the spec that uses a text as the name of a thing."""
TOLERATED: Final = {
    ("context", "con:"),
    *((thing, "nul.") for thing in ("context", "flag", "setting")),
}
"""Names that are valid for a thing, because colons, dots or capitals are allowed there and no path is made of it."""


@pytest.mark.parametrize("thing", NAMED_THINGS)
def test_no_name_is_a_path_an_option_or_a_command(thing: str) -> None:
    """Each hostile name is refused by a finding with a location and help."""
    for text in HOSTILE_NAMES:
        if (thing, text) in TOLERATED:
            continue
        project, findings = loaded(spec(**NAMED_THINGS[thing](text)))
        findings = (
            compile_project(project, CATALOG, earlier_findings=findings).findings
            if project
            else findings
        )
        errors = [finding for finding in findings if finding.level == "error"]
        assert errors, text
        assert all(finding.location.line > 1 and finding.help for finding in errors), text


@pytest.mark.parametrize(
    "name", ["con", "nul", "aux", "prn", "com1", "id", "null-1", "yes-1", "true-1"]
)
def test_reserved_words_of_other_systems_are_valid_names(name: str) -> None:
    """A name that another system reserves, or that resembles a YAML boolean, is used unchanged."""
    (config,) = configs(spec(name=name, sizes=["v2-8"]))
    assert (
        f"jobs/{name}/v2-8" in yaml.safe_load(config.text)["baseOutputDirectory"]["outputUriPrefix"]
    )


@pytest.mark.parametrize("target", ["vertex-ai", "gke"])
@pytest.mark.parametrize(
    "text", [text for text in HOSTILE_NAMES if "${" not in text and len(text) < 8_192]
)
def test_an_argument_reaches_the_config_unchanged(text: str, target: str) -> None:
    """The text of an argument is never interpreted as a path, an option, a command or a template."""
    size = "v2-8" if target == "vertex-ai" else "v5litepod-4"
    training = {"training": {"tuned_on": size, "batch_size": 1024, "train_steps": 4000}}
    (config,) = configs(spec(target=target, sizes=[size], trainer__args={"a": text}, **training))
    config_json = json.dumps(yaml.safe_load(config.text))
    expected = f"--a={text}" if target == "vertex-ai" else f"--a={text}".replace("$(", "$$(")
    assert json.dumps(expected) in config_json


TEXT: Final = json.dumps(spec(), indent=1)
BLOCK: Final = str(yaml.safe_dump(spec(), sort_keys=False))
ENCODINGS: Final[dict[str, tuple[bytes, str | None]]] = {
    "line feeds of another system": (BLOCK.replace("\n", "\r\n").encode(), None),
    "line feeds of an old one": (BLOCK.replace("\n", "\r").encode(), None),
    "a byte order mark": (b"\xef\xbb\xbf" + BLOCK.encode(), None),
    "two byte order marks": (b"\xef\xbb\xbf" * 2 + BLOCK.encode(), "TPU011"),
    "UTF-16": (BLOCK.encode("utf-16"), "TPU001"),
    "UTF-32": (BLOCK.encode("utf-32"), "TPU001"),
    "no UTF-8": (BLOCK.encode().replace(b"mnist", b"mn\xefst"), "TPU001"),
    "more bytes than a character has": (
        BLOCK.encode().replace(b"mnist", b"\xc0\xaemnist"),
        "TPU001",
    ),
    "a surrogate": (BLOCK.encode().replace(b"mnist", b"\xed\xa0\x80"), "TPU001"),
    "an escaped surrogate": (TEXT.encode().replace(b"mnist", b"\\ud800"), "TPU002"),
    "NUL": (BLOCK.encode().replace(b"mnist", b"mn\0ist"), "TPU002"),
    "an escaped NUL": (TEXT.encode().replace(b"mnist", b"mn\\u0000ist"), "TPU011"),
    "a bell": (BLOCK.encode().replace(b"mnist", b"mn\x07ist"), "TPU002"),
    "an escape sequence": (BLOCK.encode().replace(b"mnist", b"\x1b[2J"), "TPU002"),
    "a control character of two bytes": (
        BLOCK.encode().replace(b"mnist", "\x9b2J".encode()),
        "TPU002",
    ),
    "a tab as indent": (BLOCK.replace("  project", "\tproject").encode(), "TPU002"),
    "tabs between JSON": (json.dumps(spec(), indent="\t").encode(), None),
    "a line separator": (BLOCK.replace("mnist", "mn\u2028ist").encode(), "TPU011"),
    "the next line": (BLOCK.replace("mnist", "mn\x85ist").encode(), "TPU011"),
    "a number beyond 64 bits": (BLOCK.replace("4000", str(2**64)).encode(), "TPU007"),
    "a number beyond all bounds": (BLOCK.replace("4000", "9" * 400).encode(), "TPU006"),
    "a fraction beyond all bounds": (BLOCK.replace("4000", "1e400").encode(), "TPU006"),
    "a number that is none": (BLOCK.replace("4000", ".nan").encode(), "TPU006"),
    "an object of Python": (
        BLOCK.replace("mnist", "!!python/object/apply:os.system [id]", 1).encode(),
        "TPU011",
    ),
    "a name of Python": (BLOCK.replace("mnist", "!!python/name:os.system", 1).encode(), "TPU011"),
    "an include": (BLOCK.replace("mnist", "!include /etc/passwd", 1).encode(), "TPU011"),
    "a template": (BLOCK.replace("mnist", "{{ 7*7 }}", 1).encode(), "TPU011"),
    "a statement": (BLOCK.replace("mnist", "{% x %}", 1).encode(), "TPU002"),
    "a merge key": (BLOCK.encode() + b"<<: {version: 2}\n", "TPU011"),
    "a value that contains itself": (b"a: &a [*a]\n", "TPU011"),
    "aliases of aliases": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (letter + 1, letter + 1, b",".join([b"*%c" % letter] * 9))
            for letter in range(ord("a"), ord("j"))
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
"""Unusual file contents, with the id of the first finding; None if the file is valid."""


@pytest.mark.parametrize(("content", "expected"), ENCODINGS.values(), ids=ENCODINGS)
def test_an_unusual_file_is_read_or_refused(content: bytes, expected: str | None) -> None:
    """The file is read as intended, or refused with a location and help."""
    document = read_bytes(content, "tpucfg.yaml")
    findings = parse_project(document).findings
    assert ids(findings)[:1] == ([expected] if expected else [])
    assert all(finding.location.line >= 1 and finding.help for finding in findings)


YAML_SIGNS: Final = st.sampled_from(
    [
        *"\t\r\n :{}[]'\"|>#%@,-&*!?<=~",
        *(
            "- ",
            ": ",
            "&a ",
            "*a",
            "!!x ",
            "<<",
            "---\n",
            "...",
            "a",
            "é",
            "1",
            "\0",
            "\ufeff",
            "\u2028",
            "\ud800",
        ),
        *("\\u", "\\ud800", "${", "{%", "0x", "1e9"),
    ]
)


@given(st.text() | st.lists(YAML_SIGNS, max_size=40).map("".join))
@example("{a: 1,\n 2 b")
@example("'")
@example("a: b\n - - x: y")
def test_any_text_is_a_document_or_a_finding(text: str) -> None:
    """No text raises an exception; each finding is located in the text; reading is deterministic."""
    document = read_text(text, "a.yaml")
    assert document.root is not None or document.findings
    rows = split_lines(document.text)
    for finding in document.findings:
        line, column = finding.location[1:3]
        assert finding.id in RULES
        assert 1 <= line <= len(rows)
        assert 1 <= column <= len(rows[line - 1]) + 1
    assert ids(read_text(text, "a.yaml").findings) == ids(document.findings)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_document_or_a_finding(content: bytes) -> None:
    """No bytes raise an exception."""
    document = read_bytes(content, "a.yaml")
    assert document.root is not None or document.findings


PLACEHOLDER_PARTS: Final = st.lists(
    st.sampled_from(["$", "{", "}", "$${", "${", " ", *(f"${{{name}}}" for name in PLACEHOLDERS)]),
    max_size=10,
)


@given(PLACEHOLDER_PARTS.map("".join))
def test_a_placeholder_is_filled_in_or_refused(text: str) -> None:
    """A text without findings can be filled in; every other one has only TPU009."""
    data = spec(trainer__args={"a": f"x{text}"}, training__sequence_length=128, sizes=["v2-8"])
    data["training"]["learning_rate"] = 0.1
    project, findings = loaded(data)
    if project is None:
        assert set(ids(findings)) == {"TPU009"}
        return
    (job,) = planned(data).jobs
    values = {
        "project": "my-project-dev",
        "name": "mnist",
        "env": "dev",
        "region": "us-central1",
        "size": "v2-8",
    }
    values |= {
        "bucket": f"gs://{job.bucket}",
        "job_dir": f"gs://{job.bucket}/jobs/mnist/v2-8",
        "cores": "8",
        "hosts": "1",
        "chips": "4",
        "slices": "1",
        "data_parallel": "8",
        "model_parallel": "1",
        "grad_accum": "1",
        "sequence_length": "128",
        "topology": "2x2",
        "run_dir": f"gs://{job.bucket}/runs/mnist/mnist-dev-v2-8",
        "run": "mnist-dev-v2-8",
        "batch_size": "1024",
        "per_device_batch_size": "128",
        "micro_batch": "128",
        "train_steps": "4000",
        "epochs": "",
        "learning_rate": "0.1",
    }
    assert job.args[0] == f"--a=x{fill_placeholders(text, values)}"


@given(st.text(st.sampled_from("${}a ")) | st.text())
def test_every_text_can_be_escaped(text: str) -> None:
    """With `$${` for `${`, any text is filled in as itself."""
    assert fill_placeholders(text.replace("${", "$${"), dict.fromkeys(PLACEHOLDERS, "lost")) == text
