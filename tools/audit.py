"""Audit every locked version for known vulnerabilities, with pip-audit and the data of OSV; needs network access.

python tools/audit.py                   exits 1 for a known vulnerability, or if the data is unavailable
python tools/audit.py --if-reachable    exits 0 if the data is unavailable, and prints the reason

Not pip-audit alone: without network access it ends with the status of a known vulnerability, and a traceback.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
LOCKS: Final = (
    "requirements.txt",
    "requirements-infra.txt",
    "requirements-dev.txt",
    "benchmarks/requirements.txt",
)
ACCEPTED: Final[Mapping[str, str]] = {}
"""Vulnerabilities that cannot be exploited here: ids with reasons. Remove an entry when no lock contains it."""
_TIMEOUT_SECONDS: Final = 20


class Audit(NamedTuple):
    """The result for one lock."""

    lock: str
    package_count: int
    """Number of audited packages."""
    vulnerabilities: tuple[str, ...]
    """One line each."""
    failure: str = ""
    """The reason why the lock could not be audited."""


def audit(lock: str, service: str | None) -> Audit:
    """Audit one lock; `service` replaces the URL of OSV."""
    # --disable-pip: the lock names every version, so nothing has to be resolved or downloaded.
    options = [
        "--requirement",
        lock,
        "--require-hashes",
        "--disable-pip",
        "--format",
        "json",
        "--desc",
        "off",
    ]
    options += [
        "--progress-spinner",
        "off",
        "--timeout",
        str(_TIMEOUT_SECONDS),
        "--vulnerability-service",
        "osv",
    ]
    options += [part for id_ in ACCEPTED for part in ("--ignore-vuln", id_)]
    options += ["--osv-url", service] if service else []
    command = [sys.executable, "-m", "pip_audit", *options]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(process.stdout)["dependencies"]
    except (ValueError, KeyError):
        last_line = (process.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1]
        return Audit(lock, 0, (), last_line[:300])
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    if skipped:
        return Audit(lock, 0, (), f"no data about {', '.join(skipped[:5])}")
    return Audit(lock, len(packages), tuple(_vulnerabilities(packages)))


def _vulnerabilities(packages: list[dict[str, Any]]) -> Iterator[str]:
    for package in packages:
        for vulnerability in package["vulns"]:
            fixed = " or ".join(vulnerability["fix_versions"]) or "no version yet"
            yield f"{package['name']} {package['version']}: {vulnerability['id']}, fixed in {fixed}"


def main(arguments: list[str] | None = None) -> int:
    """Audit each lock and print the results; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Audit every locked version for known vulnerabilities."
    )
    parser.add_argument(
        "--if-reachable", action="store_true", help="exit 0 if the data is unavailable"
    )
    parser.add_argument("--service", metavar="URL", help="URL of OSV's data, if not its own")
    options = parser.parse_args(arguments)
    audits = []
    for lock in LOCKS:
        audits.append(audit(lock, options.service))
        print(*_lines(audits[-1]), sep="\n")
        # The requests for the other locks would time out too.
        if audits[-1].failure:
            print("not audited, as the data is unavailable. With network access, run: make audit")
            break
    is_unknown = bool(audits[-1].failure) and not options.if_reachable
    return int(is_unknown or any(result.vulnerabilities for result in audits))


def _lines(result: Audit) -> Iterator[str]:
    if result.failure:
        yield f"{result.lock}: not audited: {result.failure}"
    elif not result.vulnerabilities:
        yield f"{result.lock}: {result.package_count} packages, no known vulnerability"
    else:
        yield from (f"{result.lock}: {vulnerability}" for vulnerability in result.vulnerabilities)
        yield "help: choose newer versions with make lock; add what cannot be exploited here to ACCEPTED, with a reason"


if __name__ == "__main__":
    sys.exit(main())
