"""`python -m fuzz`: run many inputs in subprocesses, or replay one of them."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from fuzz.cases import Case
from fuzz.corpus import ROOT
from fuzz.kinds import KINDS
from fuzz.report import page, write
from fuzz.tally import Failure, Tally, cases_of, merge, run_all, tally_of_failure

FAILURES_FOLDER: Final = ROOT / ".cache" / "fuzz"
"""Folder for inputs that failed."""
MAX_MEGABYTES: Final = 200
"""Memory limit of a process."""
_CHUNK: Final = 500
_MAX_ADDRESS_SPACE: Final = 3 << 30
"""Limit of a process's address space, in bytes: exceeding it is a failure, and other processes keep their memory."""
_TIMEOUT_SECONDS: Final = 600
"""Timeout of a process for one chunk."""


def main() -> int:
    """Run the command line; return 1 if an input failed."""
    options = _options()
    if options.replay:
        return _replay(Path(options.replay))
    if options.chunk:
        return _chunk(options.seed, options.chunk, options.kind, Path(options.progress))
    start = time.monotonic()
    tally = merge(_run_chunks(options.inputs, options.seed, options.kind, options.processes))
    section = page(tally, options.seed, time.monotonic() - start)
    print(section)
    if options.write:
        write(section)
    if tally.peak > MAX_MEGABYTES:
        print(
            f"a process used {tally.peak:.0f} MB, which is more than {MAX_MEGABYTES}",
            file=sys.stderr,
        )
    return int(bool(tally.failures) or tally.peak > MAX_MEGABYTES)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the tpucfg command.")
    parser.add_argument(
        "--inputs",
        type=int,
        default=100_000,
        metavar="N",
        help="number of inputs (default: 100,000)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="seed of the inputs (default: 1)"
    )
    parser.add_argument("--kind", choices=list(KINDS), help="run only one kind")
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of parallel processes",
    )
    parser.add_argument(
        "--write", action="store_true", help="also write the figures into benchmarks/RESULTS.md"
    )
    parser.add_argument("--replay", metavar="FILE", help="replay only the input in this file")
    parser.add_argument("--chunk", help=argparse.SUPPRESS)  # used to start the subprocesses
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_chunks(inputs: int, seed: int, kind: str | None, processes: int) -> Iterator[Tally]:
    """Run each chunk in its own process, so that a crash affects no other chunk, and yield the tallies."""
    chunks = [range(start, min(start + _CHUNK, inputs)) for start in range(0, inputs, _CHUNK)]
    completed = failed = 0
    with ThreadPoolExecutor(processes) as pool:
        for tally in pool.map(lambda numbers: _run_chunk_process(seed, numbers, kind), chunks):
            for failure in tally.failures:
                print(
                    f"\n{failure.why}\nthis input failed; replay it with:\n  {_save_failure(failure)}",
                    file=sys.stderr,
                )
            completed, failed = completed + tally.inputs.total(), failed + len(tally.failures)
            print(
                f"\r{completed:,} of {inputs:,} inputs, {failed} failed",
                end="",
                file=sys.stderr,
                flush=True,
            )
            yield tally
    print(file=sys.stderr)


def _run_chunk_process(seed: int, numbers: range, kind: str | None) -> Tally:
    with tempfile.NamedTemporaryFile("r", prefix="tpucfg-fuzz-") as progress:
        chunk = [
            "--chunk",
            f"{numbers.start}:{numbers.stop}",
            "--progress",
            progress.name,
            "--seed",
            str(seed),
        ]
        command = [sys.executable, "-m", "fuzz", *chunk, *(["--kind", kind] if kind else [])]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'compiler'}"}
        try:
            process = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=_TIMEOUT_SECONDS,
            )
        except subprocess.SubprocessError as error:
            last = int(progress.read() or numbers.start)
            (case,) = cases_of(seed, [last], kind)
            reason = f"the process ended during this input: {error} {getattr(error, 'stderr', '')}"
            return tally_of_failure(Failure(case, reason))
    return Tally.from_json(process.stdout)


def _chunk(seed: int, chunk: str, kind: str | None, progress: Path) -> int:
    """Run the inputs of a chunk and print their tally; write the number of the current input to a file."""
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_ADDRESS_SPACE, _MAX_ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    start, stop = map(int, chunk.split(":"))

    def cases() -> Iterator[Case]:
        for number in range(start, stop):
            progress.write_text(str(number))
            yield from cases_of(seed, [number], kind)

    print(run_all(cases()).to_json())
    return 0


def _save_failure(failure: Failure) -> str:
    """Write the input to a file and return the command that replays it."""
    text = failure.case.to_json()
    FAILURES_FOLDER.mkdir(parents=True, exist_ok=True)
    path = FAILURES_FOLDER / f"{failure.case.kind.replace(' ', '-')}-{failure.case.seed}.json"
    path.write_text(text, encoding="utf-8")
    python = Path(sys.executable)
    program = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    return f"PYTHONPATH=tests {program} -m fuzz --replay {path.relative_to(ROOT)}"


def _replay(path: Path) -> int:
    tally = run_all([Case.from_json(path.read_text(encoding="utf-8"))])
    print("\n".join(failure.why for failure in tally.failures) or "no failure")
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
