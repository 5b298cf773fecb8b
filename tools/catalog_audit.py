"""Compare the catalog with the TPU compiler: devices, hosts and topology of every size, and the HBM of a device.

python tools/catalog_audit.py                   uses the environment of `make tpu-compiler`; exits 1 for a disagreement
python tools/catalog_audit.py --python PATH     uses another Python with JAX and libtpu

The compiler knows shapes, not sizes: that a row of 16 chips is 4x4 and not 2x8 is known from its sources only.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tpucfg.catalog import Catalog, Generation, Slice
from tpucfg.catalog.catalog import DATA
from tpucfg.fit.inputs import UnknownTopology, compiler_topology

ROOT: Final = Path(__file__).resolve().parent.parent
PYTHON: Final = ROOT / ".venv" / "tpu-compiler" / "bin" / "python"
WORKER: Final = Path(__file__).with_name("topology_answers.py")
DEFAULT_HOST: Final = 4
"""Chips of a host for which the topology API needs no option."""
MIN_HBM_SHARE: Final = 0.93
"""The least share of the published HBM that the compiler grants: it reserves 6.5% of a v2 device, less of others."""
MAX_HBM_SHARE: Final = 1.01
"""The greatest share: the compiler grants 95.74 GiB of a v5p device, for which Google's page states 95."""
MAX_DEVICES: Final = 80_000
"""Limit for the devices of one process: JAX keeps 4 to 9 KB for each until the process ends."""
TIMEOUT_SECONDS: Final = 900

Question = Mapping[str, Any]
Answer = Mapping[str, Any]


class Case(NamedTuple):
    """One question to the compiler, and the answer by the catalog."""

    location: str
    """File and line of the catalog."""
    subject: str
    """The size with its shape and machine, or the generation."""
    question: Question
    expected: Answer
    devices: int
    """Devices that the compiler describes, which determine the memory of its process."""


class Audit(NamedTuple):
    """All cases, and the disagreements that need no compiler."""

    cases: tuple[Case, ...]
    disagreements: tuple[str, ...]
    shapeless: tuple[str, ...]
    """Sizes whose topology the catalog does not know."""
    own_host: tuple[str, ...]
    """Sizes on one host of other than four chips, which the compiler knows only by an option."""


class Answers(NamedTuple):
    """The versions of the compiler, and one answer for each question."""

    versions: Mapping[str, str]
    answers: tuple[Answer, ...]


class UnusableError(Exception):
    """The Python cannot ask the compiler."""


def audit_of(data: Path) -> Audit:
    """Return the cases of a directory of catalog data: each size with all its shapes and machines."""
    cases: list[Case] = []
    disagreements: list[str] = []
    sizes: list[Slice] = []
    for generation in Catalog(data).generations():
        lines = _lines(data / f"{generation.name}.yaml")
        cases.append(_hbm_case(generation, lines["hbm_gib_per_chip"]))
        sizes += generation.slices
        for slice_ in (variant for one in generation.slices for variant in _variants(one)):
            case = _case(slice_, lines[slice_.size])
            if isinstance(case, str):
                disagreements.append(case)
            else:
                cases.append(case)
    return Audit(
        tuple(cases),
        tuple(disagreements),
        shapeless=tuple(one.size for one in sizes if one.topology is None),
        own_host=tuple(one.size for one in sizes if one.topology and _has_own_host(one)),
    )


def _case(slice_: Slice, location: str) -> Case | str:
    """Return the question about a slice; a disagreement if its hosts do not fit its topology."""
    asked = compiler_topology(slice_)
    if isinstance(asked, UnknownTopology):
        return f"{location}: {_subject(slice_)}: {asked.reason}"
    options = dict(asked.options)
    if not _has_own_host(slice_):
        # Without the hosts of the catalog, the compiler is a witness of their number.
        del options["chips_per_host_bounds"]
    expected = {"devices": slice_.devices, "hosts": slice_.hosts, "topology": _axes(slice_)}
    return Case(
        location,
        _subject(slice_),
        {"name": asked.name, "options": options},
        expected,
        asked.devices,
    )


def _has_own_host(slice_: Slice) -> bool:
    """Return True for a slice on one host of other than four chips, which has to be described to the compiler."""
    return slice_.hosts == 1 and slice_.chips_per_host != DEFAULT_HOST


def _variants(one: Slice) -> Iterator[Slice]:
    """Yield a size on each of its machines and with each of its topologies; none if its topology is unknown."""
    machines = [
        one.on_machine(machine.name) for machine in (*one.machines, *one.named_machines)
    ] or [one]
    for slice_ in machines:
        yield from (slice_.on_topology(name) for name in slice_.topologies)


def _subject(slice_: Slice) -> str:
    machine = f" on {slice_.machine.name}" if slice_.machine else ""
    return f"{slice_.size} as {slice_.topology}{machine}"


def _axes(slice_: Slice) -> list[int]:
    axes = [int(axis) for axis in (slice_.topology or "").split("x")]
    return axes + [1] * (3 - len(axes))


def _hbm_case(generation: Generation, location: str) -> Case:
    """Return the question for the HBM of one device of a generation, on its smallest slice."""
    one = min(
        (slice_ for slice_ in generation.slices if slice_.topology), key=lambda slice_: slice_.chips
    )
    asked = compiler_topology(one)
    if isinstance(asked, UnknownTopology):
        raise UnusableError(f"{location}: {one.size}: {asked.reason}")
    question = {"name": asked.name, "options": dict(asked.options), "hbm": True}
    gib = (one.hbm_gib or 0) / one.devices
    return Case(
        location,
        f"{generation.title}: {gib:g} GiB HBM a device",
        question,
        {"hbm": gib},
        one.devices,
    )


def _lines(path: Path) -> dict[str, str]:
    """Return the location of each key of a file of the catalog, and of each of its sizes."""
    document: Any = yaml.compose(path.read_text())
    rows = [
        *document.value,
        *next(value.value for key, value in document.value if key.value == "sizes"),
    ]
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return {key.value: f"{shown}:{key.start_mark.line + 1}" for key, _ in rows}


def ask(python: str, cases: Sequence[Case]) -> Answers:
    """Ask each question once, in as many processes as the memory of one needs.

    Raises:
        UnusableError: The Python has no JAX or no libtpu.
    """
    questions = list({question_key(case.question): case for case in cases}.values())
    versions: Mapping[str, str] = {}
    by_key: dict[str, Answer] = {}
    while questions:
        batch = _batch(questions)
        first, answers = _run(python, [case.question for case in batch])
        versions = first
        if len(answers) < len(batch):
            # A question that ends the process is not asked again.
            answers.append({"error": "the compiler crashed, or did not answer in time"})
        for case, answer in zip(batch, answers, strict=False):
            by_key[question_key(case.question)] = answer
        questions = questions[len(answers) :]
    return Answers(versions, tuple(by_key[question_key(case.question)] for case in cases))


def question_key(question: Question) -> str:
    """Return the text that equal questions share."""
    return json.dumps(question, sort_keys=True)


def _batch(questions: Sequence[Case]) -> list[Case]:
    """Return the first questions whose devices one process can describe; at least one question."""
    batch, devices = [questions[0]], questions[0].devices
    for case in questions[1:]:
        devices += case.devices
        if devices > MAX_DEVICES:
            break
        batch.append(case)
    return batch


def _run(python: str, questions: Sequence[Question]) -> tuple[Mapping[str, str], list[Answer]]:
    """Return the versions of the compiler, and the answers before the process ended."""
    command = [python, "-B", str(WORKER)]
    text = json.dumps(questions)
    try:
        process = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        output, messages = process.stdout, process.stderr
    except OSError as error:
        raise UnusableError(f"{python}: {error.strerror}") from None
    except subprocess.TimeoutExpired as error:
        output, messages = (error.stdout or b"").decode(), "no answer in time"
    lines = [json.loads(line) for line in output.splitlines() if line.endswith("}")]
    if not lines:
        last_line = (messages.strip().splitlines() or ["no message"])[-1]
        raise UnusableError(f"{python} cannot ask the TPU compiler: {last_line[:300]}")
    return lines[0], lines[1:]


def disagreements(cases: Sequence[Case], answers: Sequence[Answer]) -> Iterator[str]:
    """Yield a line for each case whose answer differs from the catalog."""
    for case, answer in zip(cases, answers, strict=True):
        start = f"{case.location}: {case.subject}"
        if "error" in answer:
            yield f"{start}: the compiler refuses {case.question['name']}: {answer['error'].splitlines()[0][:300]}"
        elif "hbm" in case.expected:
            yield from _hbm_disagreement(start, case.expected["hbm"], hbm_limit(answer))
        else:
            for key, ours in case.expected.items():
                if ours != answer[key]:
                    yield f"{start}: {key} {_plain(ours)} in the catalog, {_plain(answer[key])} in the compiler"


def _hbm_disagreement(start: str, ours: float, limit: float | None) -> Iterator[str]:
    if limit is None:
        yield f"{start}, but the compiler states no limit"
    elif not MIN_HBM_SHARE <= limit / ours <= MAX_HBM_SHARE:
        share = f"outside {MIN_HBM_SHARE:.0%} to {MAX_HBM_SHARE:.0%} of it"
        yield f"{start}, but the compiler grants {limit:g} GiB, which is {share}"


def hbm_limit(answer: Answer) -> float | None:
    """Return the GiB of a device that a refusal of the compiler states as available, in either of its wordings."""
    match = re.search(r"available HBM \(([0-9.]+)G\)|[0-9.]+[A-Z] of ([0-9.]+)G hbm", answer["hbm"])
    return float(match[1] or match[2]) if match else None


def _plain(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, list) else str(value)


def main(arguments: list[str] | None = None) -> int:
    """Audit the catalog and print the disagreements; return the exit status."""
    parser = argparse.ArgumentParser(description="Compare the catalog with the TPU compiler.")
    parser.add_argument(
        "--python", default=str(PYTHON), metavar="PATH", help="a Python with jax[tpu]"
    )
    parser.add_argument(
        "--data", type=Path, default=DATA, metavar="DIR", help="another directory of catalog data"
    )
    options = parser.parse_args(arguments)
    try:
        audit = audit_of(options.data.resolve())
        versions, answers = ask(options.python, audit.cases)
    except UnusableError as error:
        print(error, "help: make tpu-compiler", sep="\n", file=sys.stderr)
        return 1
    problems = [*audit.disagreements, *disagreements(audit.cases, answers)]
    print(*problems, *_summary(audit, versions, answers, len(problems)), sep="\n")
    return int(bool(problems))


def _summary(
    audit: Audit, versions: Mapping[str, str], answers: Sequence[Answer], count: int
) -> Iterator[str]:
    sizes = {
        case.subject.partition(" as ")[0] for case in audit.cases if "hbm" not in case.expected
    }
    shapes = sum("hbm" not in case.expected for case in audit.cases)
    compiler = f"jax {versions['jax']} and libtpu {versions['libtpu']}"
    result = f"{count} disagreements" if count else "no disagreement"
    yield f"{result}: {len(sizes)} sizes, {shapes} shapes of them on their machines, compared with {compiler}"
    if audit.own_host:
        names = ", ".join(audit.own_host)
        yield f"one host of other than {DEFAULT_HOST} chips, which the compiler had to be given: {names}"
    if audit.shapeless:
        yield f"not compared, as no source states their topology: {len(audit.shapeless)} sizes"
    for case, answer in zip(audit.cases, answers, strict=True):
        if "hbm" in answer and (limit := hbm_limit(answer)):
            yield f"{case.subject}, of which the compiler grants {limit:g} GiB"


if __name__ == "__main__":
    sys.exit(main())
