"""The config of a job: its text by the target's template, parsed again to compare it with the request body."""

import json
from functools import cache
from typing import Any, Final

from tpucfg import __version__
from tpucfg.findings import Finding, Location
from tpucfg.named_tuple import NamedTuple
from tpucfg.plan import Job
from tpucfg.targets import RequestBody, target_named
from tpucfg.targets.objects import companions_of, documents
from tpucfg.yamldoc.reader import read_text

_CANONICAL_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class Config(NamedTuple):
    """The rendered file of one job."""

    job: Job
    request_body: RequestBody
    companions: tuple[RequestBody, ...]
    """The objects that are created before the request body; most jobs have none."""
    text: str
    """All of them as YAML documents, below a header comment, the request body last."""

    @property
    def documents(self) -> tuple[RequestBody, ...]:
        """The values of the text's documents, in order."""
        return (*self.companions, *documents(target_named(self.job.target), self.request_body))


def render_config(job: Job, request_body: RequestBody) -> Config:
    """Render the config of a job as YAML, by its target's template."""
    # Only commands that render import the writer and the template engine.
    from tpucfg.yamldoc.writer import FieldWriter

    companions = companions_of(job)
    values = {
        "version": __version__,
        "job": job,
        "slice": job.slice,
        "companions": [FieldWriter(companion) for companion in companions],
        "body": FieldWriter(request_body),
        "digest": job_hash(job, request_body),
    }
    return Config(
        job, request_body, companions, _template(f"{job.target}/config.yaml.j2").render(values)
    )


@cache
def _template(name: str) -> Any:
    return config_template_engine().get_template(name)


@cache
def config_template_engine() -> Any:
    """Return the template engine of the configs, with filters that write values as YAML and quote them."""
    from tpucfg.package_data import template_engine
    from tpucfg.yamldoc.writer import FILTERS, to_yaml

    return template_engine(yaml=to_yaml, **FILTERS)


def round_trip_finding(config: Config) -> Finding | None:
    """Return an error if the text, parsed again, differs from the request body, which is a mistake in the template."""
    from tpucfg.yamldoc.writer import round_trips

    name = f"{config.job.name}.yaml"
    if round_trips(config.text, *config.documents):
        return None
    if syntax_errors := read_text(config.text, name, several=len(config.documents) > 1).findings:
        return syntax_errors[0]
    message = (
        f"the rendered text of {config.job.name} differs from its job: its template is at fault"
    )
    return Finding.of("TPU079", message, Location(f"templates/{config.job.target}/config.yaml.j2"))


def job_hash(job: Job, request_body: RequestBody) -> str:
    """Return a hash of the resolved job, which changes if and only if the effect of the config changes."""
    # hashlib loads OpenSSL, and `check` computes no hash.
    import hashlib

    resolved = [job.target, job.name, request_body, *companions_of(job)]
    return hashlib.sha256(_CANONICAL_JSON.encode(resolved).encode()).hexdigest()[:16]
