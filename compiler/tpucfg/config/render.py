"""Job to Config: the target's message, laid out by its template."""

import json
from functools import cache
from typing import Any, Final, NamedTuple

from tpucfg import __version__
from tpucfg.plan.model import Job
from tpucfg.targets import Message, target_named
from tpucfg.targets.common import merged

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class Config(NamedTuple):
    """The rendered file of one job."""

    job: Job
    message: Message
    """What the text says, as plain data."""
    text: str


def message_of(job: Job) -> Message:
    """The target's message with the spec's `extra` merged in: mappings are merged, anything else is replaced."""
    return merged(target_named(job.target).message(job), job.options.get("extra", {}))


def render(job: Job, message: Message) -> Config:
    """The config as YAML, by the target's template."""
    values = {
        "version": __version__,
        "job": job,
        "slice": job.slice,
        "message": message,
        "digest": digest(job, message),
    }
    return Config(job, message, _template(f"{job.target}/config.yaml.j2").render(values))


def digest(job: Job, message: Message) -> str:
    """The hash of the resolved job: it changes where, and only where, the config would do something else."""
    import hashlib

    resolved = [job.target, job.name, message]
    return hashlib.sha256(_CANONICAL.encode(resolved).encode()).hexdigest()[:16]


@cache
def _template(name: str) -> Any:
    return environment().get_template(name)


@cache
def environment() -> Any:
    """The configs' engine. Values reach YAML through `yaml` and `entry` only, which quote: see yaml_text."""
    from tpucfg import templating
    from tpucfg.config.yaml_text import entry, to_yaml

    return templating.environment(yaml=to_yaml, entry=entry)
