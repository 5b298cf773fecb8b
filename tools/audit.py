"""Look every locked version up among the known holes, by pip-audit and OSV's data; needs a network.

python tools/audit.py                   exits 1 where a hole is known, or where the data could not be had
python tools/audit.py --if-reachable    exits 0 where the data could not be had, and says so
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
LOCKS: Final = ("requirements.txt", "requirements-infra.txt", "requirements-dev.txt", "benchmarks/requirements.txt")
ACCEPTED: Final[Mapping[str, str]] = {}
"""Holes that cannot be used here, by id, each with the reason. One that is not found any more has to go."""
_TIMEOUT_SECONDS: Final = 20


class Audit(NamedTuple):
    """What is known of one lock."""

    lock: str
    audited: int
    """Packages that were looked up."""
    holes: tuple[str, ...]
    """One line each."""
    why_not: str = ""
    """Why nothing is known."""


def audit(lock: str, service: str | None) -> Audit:
    """Ask for one lock; `service` is another address than OSV's own."""
    options = ["--requirement", lock, "--require-hashes", "--disable-pip", "--format", "json", "--desc", "off"]
    options += ["--progress-spinner", "off", "--timeout", str(_TIMEOUT_SECONDS), "--vulnerability-service", "osv"]
    options += [part for id_ in ACCEPTED for part in ("--ignore-vuln", id_)]
    options += ["--osv-url", service] if service else []
    command = [sys.executable, "-m", "pip_audit", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return Audit(lock, 0, (), (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1][:300])
    skipped = [package["name"] for package in found if "skip_reason" in package]
    if skipped:
        return Audit(lock, 0, (), f"no data about {', '.join(skipped[:5])}")
    return Audit(lock, len(found), tuple(_holes(found)))


def _holes(found: list[dict[str, Any]]) -> Iterator[str]:
    for package in found:
        for hole in package["vulns"]:
            fixed = " or ".join(hole["fix_versions"]) or "no version yet"
            yield f"{package['name']} {package['version']}: {hole['id']}, fixed in {fixed}"


def main(arguments: list[str] | None = None) -> int:
    """Ask for each lock and print what was found; return the exit status."""
    parser = argparse.ArgumentParser(description="Look every locked version up among the known holes.")
    parser.add_argument("--if-reachable", action="store_true", help="exit 0 where the data could not be had")
    parser.add_argument("--service", metavar="URL", help="where OSV's data is, if not at its own address")
    given = parser.parse_args(arguments)
    audits = []
    for lock in LOCKS:
        audits.append(audit(lock, given.service))
        print(*_said(audits[-1]), sep="\n")
        if audits[-1].why_not:
            print("not audited, as the data could not be had. With a network: make audit")
            break
    unknown = bool(audits[-1].why_not) and not given.if_reachable
    return int(unknown or any(it.holes for it in audits))


def _said(found: Audit) -> Iterator[str]:
    if found.why_not:
        yield f"{found.lock}: not audited: {found.why_not}"
    elif not found.holes:
        yield f"{found.lock}: {found.audited} packages, no known hole"
    else:
        yield from (f"{found.lock}: {hole}" for hole in found.holes)
        yield "help: make lock chooses newer versions; what cannot be used here goes to ACCEPTED, with the reason"


if __name__ == "__main__":
    sys.exit(main())
