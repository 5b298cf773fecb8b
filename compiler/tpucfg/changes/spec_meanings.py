"""The meaning of changed facts of a spec, for a reader who judges what its jobs do, reach and cost.

A changed figure, argument or variable is a change without a caution, unless a row has another risk. Of `extra`, only
what is listed here as harmless is none: the fields of the services are too many for a list of dangers.
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.facts import ABSENT, FactChange, Scope
from tpucfg.changes.meanings import (
    Comparison,
    Condition,
    Meaning,
    added,
    always,
    becomes,
    changed,
    kept,
    removed,
    texts_of,
)
from tpucfg.changes.revision_facts import READ_ONLY
from tpucfg.changes.statements import Risk
from tpucfg.findings import RULES
from tpucfg.number_format import format_factor
from tpucfg.paths import pattern_steps
from tpucfg.results.cost import FREE_RESTARTS, NO_DURATION
from tpucfg.spec.project import Number
from tpucfg.spec.settings import Duration
from tpucfg.targets.extra import is_harmless

_HOST: Final = r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}"
_REFERENCE: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])(?:[a-z][a-z0-9+.-]{1,20}://|/gcs/)[^\s/'\"?#,;)]+"
    rf"|(?<![\w@:/.-])(?!127\.|0\.)(?:[\w.:-]{{1,64}}@{_HOST}|{_HOST}:[0-9]{{2,5}}(?!\w)|(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}(?![\w.]))",
    re.IGNORECASE,
)
"""The service and the bucket or host of an address: `gs://bucket`, `https://example.com`, and without a scheme
`git@example.com`, `example.com:5000` or `192.0.2.1`, unless that is the job's own host."""
_WORD_ENDS: Final = re.compile(r"[\s'\"?#,;=()]+")
_PARENT_FOLDER: Final = ".."
_BUCKETS: Final = ("gs://", "/gcs/")
_DIGEST: Final = "@sha256:"
_PROJECT_REGISTRY: Final = re.compile(r"[a-z0-9$\{}-]+-docker\.pkg\.dev|(?:[a-z0-9-]+\.)?gcr\.io")
_DEFAULT_REGISTRY: Final = "docker.io"
_LATEST: Final = "latest"
LIFTED: Final = "protection lifted"
"""The headline of lifted protection, which the summary omits if a resource already shows it."""
_NOT_COUNTED: Final = "the costs below do not count it, as it could hide what the change costs"
_PRICES: Final = "prices changed"
_BUCKET: Final = "bucket changed from {before} to {after}: "
_MOUNT_FOLDERS: Final = ("/data", "/datasets", "/mnt", "/gcs", "/checkpoints", "/output", "/tmp", "/cache")  # noqa: S108
"""Folders in which no image has its program."""


# Addresses


def _references(value: Any) -> set[str]:
    """Return the services and hosts of the addresses in a value."""
    return {match for text in texts_of(value) for match in _REFERENCE.findall(text)}


def _new_references(change: FactChange, comparison: Comparison) -> list[str]:
    """Return the services and hosts that neither the value before nor the base has, and that are not the bucket."""
    new = _references(change.after) - _references(change.before)
    if not new:
        return []
    bucket = comparison.pair(Scope(change.scope.environment), "environment", "bucket")[1]
    new -= {f"{start}{bucket}" for start in _BUCKETS}
    known = _known_references(comparison) if new and not comparison.is_kept(change.scope) else set()
    return sorted(new - known)


def _known_references(comparison: Comparison) -> set[str]:
    return {match for _, text in comparison.known_texts for match in _REFERENCE.findall(text)}


def _other_bucket(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    return tuple(name for name in _new_references(change, comparison) if name.startswith(_BUCKETS))[:1]


def _other_address(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    return tuple(_new_references(change, comparison)[:1])


def _leads_out(change: FactChange, _: Comparison) -> tuple[str, ...]:
    """Return the first new path that leaves a folder: `${bucket}/../other` can be a file of another bucket."""
    old, new = (
        [word for text in texts_of(value) if _PARENT_FOLDER in text for word in _WORD_ENDS.split(text)]
        for value in change[2:4]
    )
    return tuple(word for word in new if _PARENT_FOLDER in word.split("/")[1:] and word not in old)[:1]


def _addresses(kind: str) -> tuple[Meaning, ...]:
    return (
        Meaning(kind, Risk.CAUTION, "{} is not the environment's bucket", _other_bucket),
        Meaning(kind, Risk.CAUTION, "{} is a new address", _other_address),
        Meaning(kind, Risk.CAUTION, "{} leads out of its folder, and can lead to another bucket", _leads_out),
    )


# Images


def _other_registry(change: FactChange, _: Comparison) -> tuple[str, ...]:
    """Return the registries of an image after and before, if they differ."""
    if not isinstance(change.before, str) or not isinstance(change.after, str):
        return ()
    old, new = _registry(change.before), _registry(change.after)
    return () if old == new else (new, old)


def _new_registry(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Return the registry of an added image, if no job of the base has one from there."""
    if change.before is not ABSENT or not isinstance(change.after, str):
        return ()
    registry = _registry(change.after)
    known = {_registry(text) for kind, text in comparison.known_texts if kind.endswith("image")}
    return (registry,) if known and registry not in known else ()


def _registry(image: str) -> str:
    """Return the host of an image and the project or owner in it."""
    host, separator, rest = image.partition("/")
    if not separator or not ("." in host or ":" in host or host == "localhost"):
        host, rest = _DEFAULT_REGISTRY, image
    parts = rest.split("/")
    # The project of a domain has two parts: example.com/my-project.
    count = 2 if _PROJECT_REGISTRY.fullmatch(host) and "." in parts[0] else 1
    return "/".join([host, *parts[: min(count, len(parts) - 1)]])


def _loses_digest(change: FactChange, _: Comparison) -> bool:
    return _DIGEST in str(change.before) and change.after is not ABSENT and _DIGEST not in str(change.after)


def _becomes_mutable(change: FactChange, _: Comparison) -> bool:
    return _is_mutable(change.after) and not _is_mutable(change.before)


def _is_mutable(image: Any) -> bool:
    """Return True if an image has neither a digest nor a version of its own."""
    if not isinstance(image, str) or _DIGEST in image:
        return False
    name = image.rpartition("/")[2]
    return ":" not in name or name.endswith(f":{_LATEST}")


def _image(pattern: str) -> tuple[Meaning, ...]:
    return (
        _caution(pattern, "code comes from {} instead of {}", _other_registry),
        _caution(pattern, "code comes from {}", _new_registry),
        _caution(pattern, "the digest that fixed its content is gone", _loses_digest),
        _caution(pattern, "its tag can mean another image at any time", _becomes_mutable),
    )


# Settings


_UNSET_ON_GKE: Final = TARGET_FACTS["gke"].unset_capacity


def _becomes_capacity(kind: str) -> Condition:
    return lambda change, _: change.before is not ABSENT and str(change.after).partition(" ")[0] == kind


def _other_secret(change: FactChange, _: Comparison) -> bool:
    old, new = (str(value).rpartition("/")[0] for value in change[2:4])
    return change.after is not ABSENT and (change.before is ABSENT or old != new)


def _at_latest(change: FactChange, _: Comparison) -> bool:
    return str(change.after).endswith(f"/{_LATEST}")


def _is_set(change: FactChange, _: Comparison) -> bool:
    return change.after is not ABSENT


def _over_program(change: FactChange, _: Comparison) -> bool:
    path = str(change.name[1])
    return change.before is ABSENT and not any(f"{path}/".startswith(f"{folder}/") for folder in _MOUNT_FOLDERS)


def _fewer(change: FactChange, comparison: Comparison) -> bool:
    is_number = isinstance(change.before, int) and isinstance(change.after, int)
    return kept(change, comparison) and is_number and bool(change.after < change.before)


def _present(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a value that a job gets which is compared with another one."""
    return change.after is not ABSENT and kept(change, comparison)


def _longer(change: FactChange, _: Comparison) -> tuple[str, ...]:
    if ABSENT in (change.before, change.after):
        return ()
    factor = Fraction(Duration.read(change.after).seconds, Duration.read(change.before).seconds)
    return (format_factor(factor),) if factor > 1 else ()


def _is_compiled(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a job whose step was compiled before."""
    return kept(change, comparison) and comparison.pair(change.scope, "step to compile")[0] is not ABSENT


def _other_target(change: FactChange, comparison: Comparison) -> bool:
    old, new = comparison.pair(change.scope, "target")
    return kept(change, comparison) and old != new


def _left_behind(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a setting of another target than before, unless it limited the hosts."""
    is_limit = change.after is ABSENT and change.name[1] in TARGET_FACTS["compute-engine"].host_settings
    is_open = change.name[1] == "external_ips" and True in (change.before, change.after)
    return _other_target(change, comparison) and ABSENT in (change.before, change.after) and (not is_limit or is_open)


def _other_region(change: FactChange, comparison: Comparison) -> bool:
    old, new = comparison.pair(Scope(change.scope.environment), "environment", "region")
    return kept(change, comparison) and old != new


def _is_default(change: FactChange, _: Comparison) -> bool:
    """Apply to a value that means the same as none."""
    return {change.before, change.after} <= {ABSENT, "default"}


def _opens(change: FactChange, _: Comparison) -> bool:
    return change.before is False and change.after is True


def _closes_no_longer(change: FactChange, _: Comparison) -> bool:
    return change.before is False


def _readable(change: FactChange, _: Comparison) -> bool:
    return bool(change.after == READ_ONLY)


def _loses_limit(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a job without a limit if the one it is compared with has one; if that is none, all jobs of the base."""
    if kept(change, comparison):
        # What limits each attempt is a limit too.
        return change.after is not ABSENT and (change.before is ABSENT or change.after == NO_DURATION)
    kinds = {kind for kind, _ in comparison.known_texts}
    return added(change, comparison) and bool(kinds) and str(change.name[0]) not in kinds


# The spec and its environments


def _destroy(change: FactChange, _: Comparison) -> tuple[str, ...]:
    return (f"pulumi destroy --stack {change.scope.environment}",)


def _unprotect(change: FactChange, _: Comparison) -> tuple[str, ...]:
    # With --run-program, Pulumi runs the stack program, which explains errors of Google's APIs.
    name = change.scope.environment
    return "protect: false", f"pulumi up --stack {name}", f"pulumi destroy --run-program --stack {name}"


def _is_error(change: FactChange, _: Comparison) -> bool:
    return change.before is ABSENT and RULES[str(change.name[1])].level == "error"


def _rises(change: FactChange, _: Comparison) -> bool:
    return _are_numbers(change) and change.after > change.before


def _falls(change: FactChange, _: Comparison) -> bool:
    return _are_numbers(change) and change.after < change.before


def _are_numbers(change: FactChange) -> bool:
    return all(isinstance(value, int | float) for value in (change.before, change.after))


def _lower_price(change: FactChange, _: Comparison) -> bool:
    return ABSENT not in (change.before, change.after) and _price(change.after) < _price(change.before)


def _price(text: str) -> Fraction:
    return Number.read(text).value


def _was(key: str) -> Condition:
    """Return a condition that applies to an environment that had a setting."""
    return lambda change, comparison: comparison.pair(change.scope, "environment", key)[0] is True


def _selects_cluster(change: FactChange, comparison: Comparison) -> bool:
    target = comparison.pair(change.scope, "environment", "target")[1]
    return target is not ABSENT and "kube_context" in TARGET_FACTS[target].environment_keys


# The table


def _both(first: Condition, second: Condition) -> Condition:
    return lambda change, comparison: first(change, comparison) and second(change, comparison)


def _caution(pattern: str, consequence: str, when: Condition = kept) -> Meaning:
    return Meaning(pattern, Risk.CAUTION, consequence, when)


def _sentence(pattern: str, text: str, when: Condition = always, risk: Risk = Risk.NONE, headline: str = "") -> Meaning:
    return Meaning(pattern, risk, when=when, headline=headline, sentence=text)


def _gate(name: str, consequence: str, when: Condition = always, risk: Risk = Risk.CAUTION) -> Meaning:
    return Meaning(f"gate.{name}", risk, consequence, when, "gate changed")


def _access(pattern: str, consequence: str, when: Condition = added) -> Meaning:
    return Meaning(pattern, Risk.ACCESS, consequence, when, "more access for jobs")


def _variables(names: Iterable[str], consequence: str, risk: Risk = Risk.CAUTION) -> Iterator[Meaning]:
    yield from (Meaning(f"variable.{name}", risk, consequence) for name in names)


def _named(row: Meaning) -> Meaning:
    """Return the row with the noun for a key of the spec."""
    kind, *name = pattern_steps(row.pattern)
    if kind not in ("option", "environment", "training") or not name or row.sentence:
        return row
    return row._replace(subject=_NOUNS.get(name[0], name[0].replace("_", " ")))


_NOUNS: Final = {
    "external_ips": "external addresses",
    "tags": "network tag",
    "data_disks": "data disk",
    "image_pull_secrets": "image pull secret",
    "priority": "priority class",
    "topology_aware": "topology-aware placement",
    "ttl": "time to live",
    "max_wait": "longest wait for capacity",
    "containers_per_host": "containers per host",
    "disk_gb": "boot disk (GB)",
    "master": "master machine",
    "project": "Google Cloud project",
    "kube_context": "kubectl context",
    "images": "access to images",
    "kms_key": "encryption key",
    "grad_accum": "gradient accumulation",
    "model_parallel": "model parallelism",
}
"""The nouns for keys of the spec, where the key without underscores is none."""
_PROGRAM: Final = (
    "image",
    "worker image",
    "package",
    "module",
    "arg style",
    "runtime version",
    "Python version",
    "step to compile",
)
_MACHINES: Final = ("capacity", "machine type", "topology", "zone", "restarts", "exit codes", "maximum run duration")
_HOSTS: Final = (
    "service_account",
    "node_service_account",
    "host_network",
    "external_ips",
    "network",
    "subnetwork",
    "tags.*",
    "disk_gb",
    "image_pull_secrets.*",
)
_PLACEMENT: Final = ("queue", "priority", "compute_class", "topology_aware", "placement_policy", "machine", "master")
_RULES: Final = ("model_parallel", "grad_accum", "batch_rule", "sequence_length", "learning_rate_rule")
_HARMLESS: Final = {
    "": (*_PROGRAM, *_MACHINES, "Python of the compiled step"),
    **dict.fromkeys(("argument", "variable", "XLA flag", "secret", "mount", "label", "fallback"), ("*",)),
    "option": (*_HOSTS, *_PLACEMENT, "runtime_version", "max_wait", "ttl", "containers_per_host"),
    "environment": ("project", "region", "target", "kube_context", "cluster", "soft_delete_days", "images"),
    "bucket to read": ("*",),
    "training": ("learning_rate", *_RULES),
}
"""By kind, the facts whose changes have no risk where no other row applies."""
_NETWORK: Final = "the job runs in another network"
_OTHER_CODE: Final = ("LD_*", "PYTHON*", "PIP_*", "UV_*", "PATH", "BASH_ENV", "ENV", "GCONV_PATH", "*_LIBRARY_PATH*")
_OTHER_WAYS: Final = ("*_PROXY", "*_proxy", "*_CERT_FILE", "*_CA_BUNDLE", "*_ENDPOINT", "*_BASE_URL", "*_EMULATOR_HOST")

_ROWS: Final = (
    Meaning("figure.**", is_silent=True),
    Meaning("target", is_silent=True),
    # The program
    *_image("image"),
    *_image("worker image"),
    *_addresses("package"),
    _caution("module", "another program runs in the job"),
    _caution("command", "another program runs in the job", always),
    *_addresses("argument.*"),
    Meaning("argument.*trust*remote*code", Risk.CAUTION, "the program can load other code", _is_set),
    Meaning("order.arguments", sentence="order of the arguments changed from {before} to {after}"),
    *_variables(_OTHER_CODE, "the program can load other code"),
    *_variables(_OTHER_WAYS, "the program's traffic takes another way"),
    *_variables(("GOOGLE_APPLICATION_CREDENTIALS",), "the program acts as another account", Risk.ACCESS),
    *_addresses("variable.*"),
    *_addresses("XLA flag.*"),
    # Its data and its secrets
    _access(
        "secret.*", "the program gets its value, and the stack grants the jobs' account access to it", _other_secret
    ),
    _caution("secret.*", "its value can change between two runs", _at_latest),
    _caution("mount.*", "what the program writes there stays on the machine, and is lost with it", removed),
    *_addresses("mount.*"),
    _caution("mount.*", "the bucket's files hide those of the image there", _over_program),
    # Machines, and the length of a run
    _caution("capacity", "machines can be taken away while a run is under way", _becomes_capacity("spot")),
    _caution(
        "capacity",
        "a run starts when machines are found, and loses them after at most 7 days",
        _becomes_capacity("flex-start"),
    ),
    _caution(
        "capacity", "machines are billed at the on-demand price, and none are set aside", _becomes_capacity("on-demand")
    ),
    _caution(
        "capacity",
        "the job runs on any nodes of its slice, whatever their capacity, and no machines are set aside for it",
        lambda change, _: change.before is not ABSENT and str(change.after) == _UNSET_ON_GKE,
    ),
    _caution(
        "capacity",
        "the reservation belongs to another project, which pays for it",
        lambda change, _: str(change.after).startswith("reservation projects/"),
    ),
    Meaning("zone", when=_other_region, is_silent=True),
    _caution("restarts", "the first failure ends a run", lambda *args: kept(*args) and becomes(0)(*args)),
    _caution("restarts", "fewer failures end a run", _fewer),
    _caution("restarts", "a program that keeps failing uses its slice for longer", _present),
    _caution("exit codes", "every failure is worth a restart", removed),
    _caution("exit codes", "other failures end a run"),
    _caution("maximum run duration", "nothing else ends a run that hangs", removed),
    _caution("maximum run duration", "a run that hangs ends later, and can cost {} as much", _longer),
    _caution("step to compile", "no compilation shows any more that the job fits", removed),
    _caution("step to compile", "another function decides what is known to fit", changed),
    _caution("Python of the compiled step", "another program decides what is known to fit", _is_compiled),
    # Settings of one target
    Meaning("option.*", when=_left_behind, is_silent=True),
    _caution(
        "option.service_account",
        "the settings of the new target name none, so jobs run as the stack's own",
        lambda *args: removed(*args) and _other_target(*args),
    ),
    _access("option.service_account", "jobs run as an account that the stack does not create", _is_set),
    _access(
        "option.node_service_account",
        "the stack grants the account the images and, on the network of the host, the bucket",
        _is_set,
    ),
    _access("option.host_network", "the program acts as the account of the nodes", becomes(True)),
    _caution(
        "option.host_network",
        "the program acts as the account of its pod",
        lambda change, comparison: change.before is True and kept(change, comparison),
    ),
    _access("option.external_ips", "hosts get addresses on the internet", _opens),
    _caution("option.external_ips", "the service decides if hosts have addresses on the internet", _closes_no_longer),
    Meaning("option.network", when=_is_default),
    _caution("option.network", _NETWORK),
    _caution("option.subnetwork", _NETWORK),
    _caution("option.tags.*", "other firewall rules apply to the hosts"),
    Meaning("option.namespace", when=_is_default),
    _caution("option.namespace", "other accounts, quotas and policies apply", always),
    _caution("option.data_disks.*", "the program no longer finds it", removed),
    _caution("option.data_disks.*", "the program reads it", _readable),
    _caution("option.data_disks.*", "the program can change it", always),
    _access("option.image_pull_secrets.*", "images come from a registry with its own credentials", added),
    _caution("option.queue", "jobs start at once, whatever quota is left", removed),
    _caution("option.queue", "other quotas apply", changed),
    _caution("option.priority", "it decides which pods wait, and which are evicted for others"),
    _caution("option.compute_class", "the class decides the machines' capacity, and with it their price"),
    _caution("option.topology_aware", "the queue places slices in another way"),
    _caution("option.containers_per_host", "each host runs as many processes, with equal parts of its chips"),
    _caution("option.placement_policy", "the nodes of a slice are placed in another way"),
    # Fields of `extra`
    Meaning("field.**", when=lambda change, _: is_harmless(change.name[1:])),
    Meaning("field.**.volumes.*.emptyDir.**"),
    Meaning("field.**.valueFrom.fieldRef.**"),
    Meaning("field.**.valueFrom.resourceFieldRef.**"),
    _access("field.**.securityContext.**", "the program gets other rights on its host", always),
    Meaning("field.**.hostAliases.**", Risk.CAUTION, "the program's traffic takes another way"),
    _access("field.**.host*.**", "the program reaches its host: its network, processes or files", always),
    _access("field.**.volumes.**", "the program gets files from elsewhere"),
    _access("field.**.automountServiceAccountToken", "the program gets a token of the cluster"),
    _access("field.**.valueFrom.**", "the program gets a token or a secret of the cluster"),
    _access("field.**.envFrom.**", "the program gets a token or a secret of the cluster"),
    _access("field.**.imagePullSecrets.**", "images come from a registry with its own credentials"),
    _access("field.**.serviceAccount*.**", "jobs run as another account, or its tokens open more services"),
    _access("field.**.enableWebAccess", "people can open a shell in the running job", becomes(True)),
    _access("field.**.enableDashboardAccess", "people can open the dashboard of the running job", becomes(True)),
    _access("field.**.enableExternalIps", "hosts get addresses on the internet", becomes(True)),
    _access("field.**.accessConfigs.**", "hosts get addresses on the internet"),
    _access("field.**.canIpForward", "hosts may send packets under other addresses", becomes(True)),
    _access("field.**.*ssh*.**", "people can log in to the hosts"),
    _access("field.**.*oslogin*.**", "keys in the metadata can log in to the hosts"),
    _access("field.**.*serial-port*.**", "people can log in over the serial port"),
    *_image("field.**.image"),
    *_image("field.**.imageUri"),
    Meaning("field.**.*etwork*.**", Risk.CAUTION, _NETWORK),
    Meaning("field.**.*ommand", Risk.CAUTION, "another program runs in the job"),
    Meaning("field.**.*-script*.**", Risk.CAUTION, "it runs as root on every host"),
    _caution("field.**.*ontainers.**.image", "another program runs in the job", added),
    Meaning("field.**", Risk.CAUTION, "the service acts on it, and no setting of the spec explains it"),
    Meaning("config", Risk.CAUTION, sentence="the config changes in a way that no setting explains: the fold shows it"),
    *(
        _sentence(
            "unlimited run",
            f"nothing limits the whole time of a run: {reason}",
            _both(_loses_limit, becomes(reason)),
            Risk.CAUTION,
            "cost of a run not limited",
        )
        for reason in (NO_DURATION, FREE_RESTARTS)
    ),
    Meaning("unlimited run", is_silent=True),
    # The ladder and the training, as factors and shares
    _sentence("rung.above", "added to the ladder, with {after} the cores of {before}, the rung below"),
    _sentence("rung.replacing", "replaces {before}, with {after} its cores"),
    _sentence("rung.removed", "removed from the ladder"),
    _sentence("ratio.global batch", "global batch size is {after} the previous value"),
    _sentence("ratio.examples", "the run sees the same number of examples", becomes("1×")),
    _sentence("ratio.examples", "the run sees {after} as many examples"),
    _sentence("ratio.learning rate", "learning rate is unchanged", becomes("1×")),
    _sentence("ratio.learning rate", "learning rate is {after} the previous value"),
    _sentence("ratio.*", "{label} is {after} the previous value"),
    _sentence("share.*", "{label} now covers {after} of the run", added),
    _sentence("share.*", "{label} now covers {after} of the run, previously {before}"),
    _sentence("training.tuned_on", "{label} changed from {before} to {after}: all rungs are rescaled"),
    Meaning("training.learning_rate", when=changed, is_silent=True),
    Meaning("training.learning_rate_rule", when=lambda *args: not changed(*args), is_silent=True),
    _sentence("flag.*", "{label} is no longer passed to the program (was {before})", becomes(None), Risk.CAUTION),
    _sentence("flag.*", "{label} is now passed to the program as {after}", lambda change, _: change.before is None),
    _sentence("flag.*", "flag for {label} changed from {before} to {after}"),
    # The spec: its names, what it allows, the gate between rungs, and prices
    _sentence(
        "project.name",
        "project renamed from {before} to {after}: its buckets, service accounts and jobs get new names",
    ),
    _sentence("project.spec", "spec moved from {before} to {after}: results and stacks are those of its new folder"),
    _sentence("allow.**", "{label}, an error, is now allowed ({after})", _is_error, Risk.CAUTION, "{label} allowed"),
    _sentence("allow.**", "{label} is now allowed ({after})", added, headline="{label} allowed"),
    _sentence("allow.**", "{label} is no longer allowed", removed, headline="{label} no longer allowed"),
    _sentence("allow.**", "reason for allowing {label} changed from {before} to {after}"),
    _sentence("probe.steps", "probes of {after} steps are now described", added),
    _sentence("probe.steps", "probes, of {before} steps, are no longer described", removed),
    _sentence("probe.steps", "probes now have {after} steps, previously {before}"),
    Meaning("probe.argument.*", subject="argument of probes"),
    _gate("fit", "a rung may run whose step does not fit, or was never compiled", removed),
    _gate("fit", "rungs now need a step that is known to fit", risk=Risk.NONE),
    _gate("max_usd", "what is started may cost any amount", removed),
    _gate("max_usd", "nothing is started that costs more", added, Risk.NONE),
    _gate("max_usd", "less may be spent", _falls, Risk.NONE),
    _gate("max_usd", "more may be spent", _rises),
    _gate("*", "rungs need it no longer", removed),
    _gate("*", "rungs now need it", added, Risk.NONE),
    _gate("min_scaling_efficiency", "the gate is stricter", _rises, Risk.NONE),
    _gate("max_drop", "the gate is stricter", _falls, Risk.NONE),
    _gate("min_scaling_efficiency", "the gate is less strict", _falls),
    _gate("max_drop", "the gate is less strict", _rises),
    _gate("*", "rungs pass by another condition"),
    # With a lower price, or none, everything looks cheaper.
    Meaning("price.**", Risk.CAUTION, _NOT_COUNTED, added, _PRICES),
    Meaning("price.**", Risk.CAUTION, "the costs below are still at the price of the base", removed, _PRICES),
    Meaning("price.**", Risk.CAUTION, "everything looks cheaper", _lower_price, _PRICES),
    Meaning("price.**", headline=_PRICES),
    # Environments
    _sentence("environment", "new environment: {after}", added),
    _sentence("protected environment", "new environment: {after}", added),
    _sentence(
        "bucket of others",
        "the jobs of the new environment read and write {after}, a bucket that its stack does not make",
        added,
        Risk.ACCESS,
        "more access for jobs",
    ),
    Meaning("bucket of others", is_silent=True),
    _sentence("environment", "removed from the spec: its stack keeps all resources until you run {}", _destroy),
    _sentence(
        "protected environment",
        "removed from the spec while protected: its stack keeps all resources, and Pulumi refuses to delete them. To "
        "delete them, restore the environment with {}, run {} and {}, and then remove it from the spec",
        _unprotect,
        Risk.DESTRUCTIVE,
        "protected resources left behind",
    ),
    _sentence(
        "environment.bucket",
        _BUCKET
        + "jobs use the new bucket, but Pulumi refuses to remove the old one from the stack while it is protected",
        _was("protect"),
        Risk.CAUTION,
    ),
    _sentence(
        "environment.bucket",
        _BUCKET + "the new bucket starts empty, and the old one is kept with its objects and still billed",
        _was("keep_data"),
        Risk.CAUTION,
    ),
    _sentence(
        "environment.bucket",
        _BUCKET + "the new bucket starts empty, and the old one is deleted with its objects",
        risk=Risk.DESTRUCTIVE,
        headline="data deleted",
    ),
    _sentence(
        "environment.protect",
        "protection lifted: resources that hold data can be replaced and deleted",
        becomes(False),
        Risk.DESTRUCTIVE,
        LIFTED,
    ),
    _sentence("environment.protect", "protection added: Pulumi refuses to delete or replace resources that hold data"),
    _sentence(
        "environment.keep_data",
        "{label} disabled: a bucket removed from the stack is deleted with its objects",
        becomes(False),
        Risk.DESTRUCTIVE,
        "data no longer kept",
    ),
    _sentence("environment.keep_data", "{label} enabled: a bucket removed from the stack is kept with its objects"),
    Meaning("environment.kube_context", Risk.CAUTION, "jobs are submitted to another cluster", _selects_cluster),
    Meaning("environment.cluster", Risk.CAUTION, "jobs are submitted to another cluster", _selects_cluster),
    _sentence(
        "environment.existing_bucket",
        "the bucket leaves the stack, which only grants access to it: it is kept with its objects",
        _both(added, _was("keep_data")),
    ),
    _sentence(
        "environment.existing_bucket",
        "the bucket leaves the stack, which deletes it with its objects",
        added,
        Risk.DESTRUCTIVE,
        "data deleted",
    ),
    _sentence("environment.existing_bucket", "the stack makes the bucket: one that exists has to be imported"),
    Meaning("environment.kms_key", Risk.CAUTION, "objects are encrypted by another key from now on"),
    Meaning("environment.soft_delete_days", Risk.CAUTION, "deleted objects can be restored for fewer days", _falls),
    Meaning("bucket to read.*", Risk.ACCESS, "jobs read another bucket", added, "more access for jobs"),
    *(Meaning(f"{kind}.{name}".lstrip(".")) for kind, names in _HARMLESS.items() for name in names),
)
MEANINGS: Final = tuple(map(_named, _ROWS))
"""All rows about jobs, environments and the spec; the first one that matches and applies decides."""
