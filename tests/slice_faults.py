"""Runs of a simulated slice by seed: what goes wrong in each, as a table of faults."""

import random
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from slice_scenario import Event, Scenario, Trainer

_LAST_BOOT: Final = 20
"""Seconds after the first boot by which all hosts have booted."""
_STARTS_WATCHDOG: Final = 3
"""The call of the start-up script that starts the watchdog; a slice whose only host dies before has none."""
_PROGRAM_CALLS: Final = 9
"""The call of the start-up script that starts the program."""
_ANSWERS: Final[tuple[list[int], ...]] = (
    *([], [], [403], [403, 403, 503], [404], [503, 0, 403]),
    [500, 429, 409],
)
"""HTTP statuses of the first calls that delete the slice."""


class Draft(NamedTuple):
    """A run without its fault, and the dice that choose the rest."""

    dice: random.Random
    run: Scenario
    work: float
    """Seconds until a program that nothing happens to completes."""

    @property
    def hosts(self) -> range:
        """The numbers of the hosts."""
        return range(len(self.run.trainers))

    def moment(self) -> float:
        """Return a time at which all programs run."""
        return self.dice.uniform(_LAST_BOOT + 1, self.work)

    def victim(self) -> int:
        """Return one of the hosts."""
        return self.dice.choice(self.hosts)

    def kill_signal(self) -> int:
        """Return SIGTERM or SIGKILL."""
        return self.dice.choice([signal.SIGTERM, signal.SIGKILL])


def _fails(draft: Draft) -> Iterator[Event]:
    draft.run.trainers[draft.victim()].work = [(draft.dice.uniform(1, draft.work), draft.dice.choice([1, 137, 139]))]
    yield from ()


def _fails_twice(draft: Draft) -> Iterator[Event]:
    short = [(draft.dice.uniform(1, 20), 1) for _ in range(2)]
    draft.run.trainers[draft.victim()].work = [*short, (draft.work, draft.dice.choice([0, 1]))]
    yield from ()


def _ends_apart(draft: Draft) -> Iterator[Event]:
    """Let every program end at another time, some after the deadline."""
    for trainer in draft.run.trainers:
        trainer.work = [(draft.dice.uniform(10, 300), draft.dice.choice([0, 0, 1]))]
    yield from ()


def _never_ends(draft: Draft) -> Iterator[Event]:
    for trainer in draft.run.trainers:
        trainer.work, trainer.checkpoint = [(9999, 0)], draft.dice.uniform(0, 40)
    yield from ()


def _ignores_sigterm(draft: Draft) -> Iterator[Event]:
    for trainer in draft.run.trainers:
        trainer.work, trainer.checkpoint = [(9999, 0)], None
    yield from ()


def _bucket_refuses(draft: Draft) -> Iterator[Event]:
    draft.run.broken_bucket = True
    yield from ()


def _program_receives(number: int) -> Callable[[Draft], Iterator[Event]]:
    def fault(draft: Draft) -> Iterator[Event]:
        yield Event("trainer", draft.victim(), draft.moment(), number)

    return fault


def _all_programs_stop(draft: Draft) -> Iterator[Event]:
    moment = draft.moment()
    for host in draft.hosts:
        yield Event("trainer", host, moment, signal.SIGTERM)


def _script_dies(draft: Draft) -> Iterator[Event]:
    first = _STARTS_WATCHDOG + 1 if len(draft.hosts) == 1 else 1
    call = draft.dice.randint(first, _PROGRAM_CALLS)
    yield Event("calls-script", draft.victim(), call, draft.kill_signal(), seconds=draft.dice.choice([0, 1]))


def _watchdog_dies(draft: Draft) -> Iterator[Event]:
    victim, number = draft.victim(), draft.kill_signal()
    for _ in range(3):
        yield Event("watchdog", victim, draft.dice.uniform(_LAST_BOOT + 1, draft.work + 70), number)


def _watchdog_dies_in_calls(draft: Draft) -> Iterator[Event]:
    victim, number = draft.victim(), draft.kill_signal()
    for call in range(1, draft.dice.randint(40, 120), draft.dice.randint(3, 30)):
        yield Event("calls-watchdog", victim, call, number, seconds=draft.dice.choice([0, 1]))


def _everything_dies(draft: Draft) -> Iterator[Event]:
    """Kill the watchdogs and programs of all hosts at once, and the watchdogs once more at the usual end."""
    moment = draft.moment()
    for host in draft.hosts:
        yield Event("trainer", host, moment)
        yield Event("watchdog", host, moment)
        yield Event("watchdog", host, draft.work + 3)


def _reboots(draft: Draft) -> Iterator[Event]:
    yield Event("reboot", draft.victim(), draft.moment(), seconds=draft.dice.uniform(0, 60))


def _all_reboot(draft: Draft) -> Iterator[Event]:
    moment = draft.moment()
    for host in draft.hosts:
        yield Event("reboot", host, moment, seconds=draft.dice.uniform(0, 20))


def _is_reset(draft: Draft) -> Iterator[Event]:
    yield Event("reset", draft.victim(), draft.moment())


def _is_lost(draft: Draft) -> Iterator[Event]:
    if len(draft.hosts) > 1:
        yield Event("lost", draft.victim(), draft.moment())


FAULTS: Final[Mapping[str, Callable[[Draft], Iterator[Event]]]] = {
    "nothing": lambda _: iter(()),
    "a program fails": _fails,
    "a program fails twice": _fails_twice,
    "programs end apart": _ends_apart,
    "programs never end": _never_ends,
    "programs ignore SIGTERM": _ignores_sigterm,
    "the bucket refuses": _bucket_refuses,
    "a program receives SIGTERM": _program_receives(signal.SIGTERM),
    "a program receives SIGKILL": _program_receives(signal.SIGKILL),
    "all programs receive SIGTERM": _all_programs_stop,
    "a script dies": _script_dies,
    "a watchdog dies": _watchdog_dies,
    "a watchdog dies in its calls": _watchdog_dies_in_calls,
    "everything dies at once": _everything_dies,
    "a host reboots": _reboots,
    "all hosts reboot": _all_reboot,
    "a host is reset": _is_reset,
    "a host is lost": _is_lost,
}


def scenario(seed: int, script: Callable[[int, int | None], str]) -> Scenario:
    """Return the run of a seed.

    Args:
        seed: The seed; the faults take turns.
        script: Returns the start-up script for a number of hosts and of restarts.
    """
    dice = random.Random(seed)  # noqa: S311 - not for secrets
    fault, hosts, work = list(FAULTS)[seed % len(FAULTS)], dice.randint(1, 4), dice.randint(30, 110)
    restarts = dice.choice([None, None, 0, 2])
    checkpoint = dice.randint(0, 50)
    trainers = [
        Trainer([(work, 0)], checkpoint=max(0, checkpoint - dice.randint(0, 20)), peer_delay=dice.randint(1, 40))
        for _ in range(hosts)
    ]
    boots = [dice.uniform(0, _LAST_BOOT) for _ in range(hosts)]
    run = Scenario(script(hosts, restarts), trainers, boots, answers=dice.choice(_ANSWERS))
    run.title = f"seed {seed}: {fault}; {hosts} hosts, restarts: {restarts}, answers: {run.answers}"
    run.events = list(FAULTS[fault](Draft(dice, run, work)))
    return run
