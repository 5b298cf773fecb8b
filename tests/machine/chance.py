"""Configs and faults drawn from a seed, with the bounds that docs/targets/hosts.md has for the end of their slice.

A bound is a sum of what the page promises: the end of the program and a minute, the deadline, the time for which
services are away, and the attempt that fails meanwhile.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from host_faults import (
    HANGS,
    clock,
    fault,
    kill,
    network,
    on,
    read_only,
    reboots,
    resets,
    services,
    systemctl,
)
from runs import IGNORES, LATE, MINUTE, TRAINS, Act, Run
from services import NO_ANSWER
from vm import Machine

VALUE: Final = 'one\ntwo "$(three)"\n'
"""The value of each secret."""
PLACES: Final[Sequence[dict[str, Any]]] = (
    {"target": "cloud-tpu", "size": "v2-8", "region": "us-central1"},
    {"target": "cloud-tpu", "size": "v5litepod-16", "region": "us-west4", "workers": (0, 1)},
    {"target": "compute-engine", "size": "v6e-4", "region": "us-east5"},
    {"target": "compute-engine", "size": "v6e-16", "region": "us-east5", "workers": (0, 2)},
)
PROGRAMS: Final[Sequence[tuple[str, float | None]]] = (
    ("echo step 1; sleep 3", 3),
    ("echo step 1; sleep 9", 9),
    ("echo step 1; sleep 3; exit 3", 3),
    (TRAINS, None),
    (IGNORES, None),
)
"""Programs, and the seconds for which each runs by itself."""


class Fault(NamedTuple):
    """A fault that begins at a second and may end at another one."""

    acts: Callable[[float, float], Sequence[tuple[float, Act]]]
    cloud: dict[str, Any] = {}  # noqa: RUF012 - never changed
    is_harmless: bool = False
    """True if the slice ends as without it; otherwise the end of the program may be seen at the deadline only."""
    is_away: bool = False
    """True if no host can delete the slice before the fault ends."""
    subject: str = ""
    """Faults of one subject do not meet: their order would decide which of them holds."""


def _from(act: Act) -> Callable[[float, float], Sequence[tuple[float, Act]]]:
    return lambda begin, _: [(begin, act)]


def _boot(act: Act) -> Callable[[float, float], Sequence[tuple[float, Act]]]:
    return lambda _, __: [(-1, act)]


def _while(begins: Act, ends: Act) -> Callable[[float, float], Sequence[tuple[float, Act]]]:
    return lambda begin, end: [(begin, begins), (end, ends)]


def _clock(to: str) -> Callable[[float, float], Sequence[tuple[float, Act]]]:
    # The library is loaded at the start of a program; the clock jumps later.
    return lambda begin, _: [(-1, clock("+0")), (begin, clock(to))]


def _none(_: float, __: float) -> Sequence[tuple[float, Act]]:
    return ()


FAULTS: Final[Sequence[Fault]] = (
    Fault(_from(fault("docker")), subject="docker"),
    Fault(_while(fault("docker"), fault("docker", "")), subject="docker"),
    Fault(_boot(fault("docker")), subject="docker"),
    Fault(_from(systemctl("kill", "--signal=STOP", "docker")), subject="docker"),
    Fault(_from(systemctl("stop", "docker.socket", "docker")), subject="docker"),
    Fault(_from(fault("systemctl")), subject="systemd"),
    Fault(_boot(fault("systemctl")), subject="systemd"),
    Fault(_from(Machine.hang), subject="systemd"),
    Fault(_from(kill("tpucfg-deadline")), is_harmless=True, subject="systemd"),
    Fault(_from(kill("tpucfg-watchdog")), is_harmless=True, subject="systemd"),
    Fault(_boot(Machine.fill), subject="machine"),
    Fault(_from(Machine.fill), subject="machine"),
    Fault(_boot(read_only), subject="machine"),
    *(
        Fault(
            _while(services(metadata=status), services(metadata=200)),
            is_away=True,
            subject="metadata",
        )
        for status in (403, 404, 429, 500, 503, NO_ANSWER)
    ),
    *(
        Fault(_none, {"deletions": statuses}, is_harmless=True, subject="api")
        for statuses in ([403], [404], [500, 429], [503], [NO_ANSWER])
    ),
    Fault(_while(network(is_up=False), network(is_up=True)), is_away=True, subject="network"),
    *(
        Fault(_none, {"uploads": status}, is_harmless=True, subject="bucket")
        for status in (403, 503, NO_ANSWER)
    ),
    *(
        Fault(_none, {"permission": answer}, is_harmless=True, subject="grant")
        for answer in (False, 503, NO_ANSWER)
    ),
    Fault(_while(services(secrets=403), services(secrets=200)), subject="secrets"),
    Fault(_boot(fault("gcsfuse", HANGS)), subject="mounts"),
    Fault(_boot(fault("gcsfuse", "exit 1")), subject="mounts"),
    *(Fault(_from(reboots(delivers=delivers)), subject="machine") for delivers in (True, False)),
    *(Fault(_from(resets(delivers=delivers)), subject="machine") for delivers in (True, False)),
    *(Fault(_clock(to), is_harmless=True, subject="machine") for to in ("+1d", "-1h", "+40s")),
    Fault(_none, {"delay": 2}, subject="delay"),
)


def draw(seed: int) -> Run:
    """Return the run of a seed."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, and no secret
    place = chance.choice(PLACES)
    program, life = chance.choice(PROGRAMS)
    seconds = chance.randrange(50, 100, 5)
    deadline = seconds - (seconds // 10 if place["target"] == "compute-engine" else 0)
    trainer, checks = _trainer(chance)
    drawn = _faults(chance)
    during, first, back = _times(chance, drawn, place, deadline)
    serious = [one for one in drawn if not one.is_harmless]
    end = min(deadline, MINUTE + min(first, float("inf") if life is None else life))
    # An attempt that began while the services were away takes up to a minute and a half, and the next one waits.
    latest = max(deadline, back + 130 if back else 0) if serious else end
    is_logged = not serious and not any("uploads" in one.cloud for one in drawn)
    return Run(
        "".join(checks) + program,
        seconds,
        end,
        latest - end + 2 * LATE,
        during=during,
        cloud={
            "secret": VALUE.encode(),
            **{key: value for one in drawn for key, value in one.cloud.items()},
        },
        trainer=trainer,
        log=("saved" if program == TRAINS else "step 1") if is_logged else "",
        **place,
    )


def _trainer(chance: random.Random) -> tuple[dict[str, Any], list[str]]:
    """Return settings of a trainer, and commands by which its program fails if they do not reach it."""
    trainer: dict[str, Any] = {}
    checks = []
    if chance.random() < 0.5:
        trainer["secrets"] = {"HF_TOKEN": "hf-token", "TRACKING_KEY": "tracking"}
        checks.append('[ "$HF_TOKEN$TRACKING_KEY" = \'' + VALUE * 2 + "' ] || exit 9; ")
    if chance.random() < 0.5:
        trainer["mounts"] = {"/data": "${bucket}/data", "/models": "gs://models"}
        checks.append("[ -e /data/mounted ] && [ -e /models/mounted ] || exit 9; ")
    if chance.random() < 0.5:
        trainer["xla_flags"] = {
            "v6e": ["--xla_tpu_scoped_vmem_limit_kib=98304"],
            "v5e": ["--xla_a=1"],
            "v2": ["--xla_a"],
        }
        checks.append('[ "$LIBTPU_INIT_ARGS" ] || exit 9; ')
    if chance.random() < 0.3:
        trainer["env"] = {"NOTE": 'it\'s "a" $note\n'}
        checks.append('[ "$${#NOTE}" = 16 ] || exit 9; ')
    if chance.random() < 0.3:
        trainer["restarts"] = {"times": 2, "exit_codes": [42]}
    return trainer, checks


def _faults(chance: random.Random) -> list[Fault]:
    """Return up to three faults of different subjects."""
    drawn: list[Fault] = []
    for one in chance.sample(FAULTS, chance.choice((0, 1, 1, 2, 2, 3))):
        if one.subject not in {other.subject for other in drawn}:
            drawn.append(one)
    return drawn


def _times(
    chance: random.Random, drawn: Sequence[Fault], place: dict[str, Any], deadline: float
) -> tuple[list[tuple[float, Act]], float, float]:
    """Return the faults by the second, the first second of one, and the second at which all services are back."""
    during: list[tuple[float, Act]] = []
    first, back = float("inf"), 0.0
    for one in drawn:
        begin = chance.uniform(2, deadline)
        end = begin + chance.uniform(5, 40)
        acts = one.acts(begin, end)
        if "workers" in place and not one.is_away and chance.random() < 0.5:
            worker = chance.choice(place["workers"])
            acts = [(second, on(worker, act)) for second, act in acts]
        during += acts
        if not one.is_harmless:
            first = min([first, *(max(0.0, second) for second, _ in acts)] if acts else [0.0])
        if one.is_away:
            back = max(back, end)
    return during, first, back
