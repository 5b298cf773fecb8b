"""Changes to the layered settings of a job: capacity, secrets, mounts, limits, and what only one target knows.

They are compared in the spec and not in the configs, because a config spreads one setting over several fields, and a
start-up script hides it. Each change names the layer of the spec that makes it.
"""

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from tpucfg.changes.statements import Risk
from tpucfg.number_format import format_factor
from tpucfg.plan import Job
from tpucfg.review.changes.jobs.field_sentences import FieldChange
from tpucfg.review.changes.jobs.job_context import JobContext
from tpucfg.review.changes.jobs.job_settings import (
    ADDRESSES,
    FIT_STEP,
    READ_ONLY,
    JobSetting,
    is_set,
    job_settings,
    layer_of,
)
from tpucfg.review.changes.jobs.verdicts import Verdict, reference_verdict
from tpucfg.spec.settings import Duration

_LATEST: Final = "latest"
_CAPACITY_CONSEQUENCES: Final[Mapping[str, str]] = {
    "spot": "machines can be taken away while a run is under way",
    "flex-start": "a run starts when machines are found, and loses them after at most 7 days",
    "on-demand": "machines are billed at the on-demand price, and none are set aside",
}
"""The drawback of each capacity for a job that had another one; a reservation has none."""


class _Pair(NamedTuple):
    """A setting in both revisions of a job."""

    setting: JobSetting
    """As it is now; as it was, if it is removed."""
    before: str | None
    after: str | None
    context: JobContext


_Judge = Callable[[_Pair], Verdict]
_LIMITS_OF_HOSTS: Final = frozenset((ADDRESSES, "network", "subnetwork", "network tag", "data disk"))
"""The settings of a target whose end is reported although the target is another one: hosts lose what they had."""


def setting_changes(context: JobContext) -> Iterator[FieldChange]:
    """Yield the settings that differ between both revisions of a job."""
    if context.before is None:
        return
    old, new = job_settings(context.before), job_settings(context.after)
    for name, setting in {**old, **new}.items():
        before, after = (settings[name].text if name in settings else None for settings in (old, new))
        if before != after and not (context.has_other_target and _has_no_meaning(setting, before, after)):
            layer = _changed_layer((context.after, new.get(name)), (context.before, old.get(name)))
            yield _change(_Pair(setting, before, after, context), layer)


def _changed_layer(*sides: tuple[Job, JobSetting | None]) -> str:
    """Return the layer that sets a value in the first job that has it in a layer: a default is in none."""
    for job, setting in sides:
        if setting and is_set(job, setting.path):
            return layer_of(job, setting.path)
    return ""


def _has_no_meaning(setting: JobSetting, before: str | None, after: str | None) -> bool:
    """Return True for a setting that only one of two targets has, unless it limited hosts before."""
    if setting.path[0] != "targets" or (before is not None and after is not None):
        return False
    if setting.subject == ADDRESSES and setting.text == "true":
        return True
    return after is None and setting.subject not in _LIMITS_OF_HOSTS


def setting_dangers(context: JobContext) -> Iterator[FieldChange]:
    """Yield the settings of a new job that give access or make something worse."""
    for setting in job_settings(context.after).values():
        change = _change(_Pair(setting, None, setting.text, context), layer_of(context.after, setting.path))
        if change.verdict.risk:
            yield change


def _change(pair: _Pair, layer: str) -> FieldChange:
    verdict = _JUDGES[pair.setting.subject](pair)
    return FieldChange(pair.setting.subject, pair.setting.label, pair.before, pair.after, verdict=verdict, layer=layer)


def _judge_capacity(pair: _Pair) -> Verdict:
    consequence = _CAPACITY_CONSEQUENCES.get(pair.after) if pair.before and pair.after else None
    return Verdict(Risk.CAUTION, consequence) if consequence else Verdict()


def _judge_secret(pair: _Pair) -> Verdict:
    if pair.after is None:
        return Verdict()
    old, new = ((text or "").rpartition("/") for text in (pair.before, pair.after))
    if old[0] != new[0]:
        return Verdict(Risk.ACCESS, "the program gets its value, and the stack grants the jobs' account access to it")
    if new[2] == _LATEST:
        return Verdict(Risk.CAUTION, "its value can change between two runs")
    return Verdict()


def _judge_mount(pair: _Pair) -> Verdict:
    if pair.after is None:
        return Verdict(Risk.CAUTION, "what the program writes there stays on the machine, and is lost with it")
    return reference_verdict(pair.before, pair.after, pair.context)


def _judge_restarts(pair: _Pair) -> Verdict:
    if pair.context.before is None or pair.after is None:
        return Verdict()
    if pair.after == "0":
        return Verdict(Risk.CAUTION, "the first failure ends a run")
    if pair.before is not None and int(pair.after) < int(pair.before):
        return Verdict(Risk.CAUTION, "fewer failures end a run")
    return Verdict(Risk.CAUTION, "a program that keeps failing uses its slice for longer")


def _judge_duration(pair: _Pair) -> Verdict:
    if pair.after is None:
        return Verdict(Risk.CAUTION, "nothing else ends a run that hangs")
    if pair.before is None:
        return Verdict()
    factor = Fraction(Duration.read(pair.after).seconds, Duration.read(pair.before).seconds)
    if factor <= 1:
        return Verdict()
    return Verdict(Risk.CAUTION, f"a run that hangs ends later, and can cost {format_factor(factor)} as much")


def _judge_fit_step(pair: _Pair) -> Verdict:
    if pair.after is None:
        return Verdict(Risk.CAUTION, "no compilation shows any more that the job fits")
    if pair.before is None:
        return Verdict()
    return Verdict(Risk.CAUTION, "another function decides what is known to fit")


def _judge_addresses(pair: _Pair) -> Verdict:
    if pair.before != "false":
        return Verdict()
    if pair.after is None:
        return Verdict(Risk.CAUTION, "the service decides if hosts have addresses on the internet")
    return Verdict(Risk.ACCESS, "hosts get addresses on the internet")


def _judge_queue(pair: _Pair) -> Verdict:
    if pair.before is None:
        return Verdict()
    return Verdict(Risk.CAUTION, "other quotas apply" if pair.after else "jobs start at once, whatever quota is left")


def _judge_disk(pair: _Pair) -> Verdict:
    if pair.after is None:
        return Verdict(Risk.CAUTION, "the program no longer finds it")
    return Verdict(Risk.CAUTION, "the program reads it" if pair.after == READ_ONLY else "the program can change it")


def _judge_pull_secret(pair: _Pair) -> Verdict:
    if pair.after is None:
        return Verdict()
    return Verdict(Risk.ACCESS, "images come from a registry with its own credentials")


def _caution(consequence: str) -> _Judge:
    """Return a judge for a setting whose every change in an existing job is a caution."""
    return lambda pair: Verdict(Risk.CAUTION, consequence) if pair.context.before else Verdict()


_NETWORK: Final = "the job runs in another network"
_JUDGES: Final[Mapping[str, _Judge]] = {
    "capacity": _judge_capacity,
    "secret": _judge_secret,
    "mount": _judge_mount,
    "XLA flag": lambda _: Verdict(),
    "restarts": _judge_restarts,
    "maximum run duration": _judge_duration,
    FIT_STEP: _judge_fit_step,
    "Python of the compiled step": lambda _: Verdict(),
    "queue": _judge_queue,
    "priority class": _caution("it decides which pods wait, and which are evicted for others"),
    "compute class": _caution("the class decides the machines' capacity, and with it their price"),
    "topology-aware placement": _caution("the queue places slices in another way"),
    "placement policy": _caution("the nodes of a slice are placed in another way"),
    "image pull secret": _judge_pull_secret,
    "network": _caution(_NETWORK),
    "subnetwork": _caution(_NETWORK),
    ADDRESSES: _judge_addresses,
    "network tag": _caution("other firewall rules apply to the hosts"),
    "data disk": _judge_disk,
    "boot disk (GB)": lambda _: Verdict(),
}
"""By subject, the function that judges a change of it."""
