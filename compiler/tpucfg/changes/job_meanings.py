"""The meaning of changed facts of jobs: their program, data and secrets, machines, and the settings of their targets.

A changed figure, argument or variable is a change without a caution, unless a row has another risk. Of `extra`, only
what is listed here as harmless is none: the fields of the services are too many for a list of dangers.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final

from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.changes.facts import (
    ABSENT,
    Comparison,
    Condition,
    FactChange,
    Meaning,
    Risk,
    Scope,
    access,
    added,
    all_of,
    always,
    becomes,
    caution,
    existed,
    is_set,
    kept,
    removed,
    silent,
    texts_of,
    was,
    worse,
)
from tpucfg.number_format import format_factor
from tpucfg.plan.rules.scaling_warnings import names_checkpoints
from tpucfg.results.cost import NO_DURATION
from tpucfg.spec.settings import Duration
from tpucfg.targets.extra import is_harmless

_HOST: Final = r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}"
_REFERENCE: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])(?:[a-z][a-z0-9+.-]{1,20}://|/gcs/(?=[^/]))[^\s/'\"?#,;)]*"
    r"|\$\{bucket\}[\w.-][^\s/'\"?#,;)]*"
    rf"|(?<![\w:/])//{_HOST}|(?<=\}}\.){_HOST}:[0-9]{{2,5}}(?!\w)|\[[0-9a-f:]{{3,40}}\](?=:[0-9]|/|$)"
    r"|(?<![\w@:/.-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?=/)"
    rf"|(?<![\w@:/.-])(?!127\.|0\.)(?:[\w.:-]{{1,64}}@{_HOST}|{_HOST}:[0-9]{{2,5}}(?!\w)|(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}(?![\w.]))",
    re.IGNORECASE,
)
"""The service and the bucket or host of an address: `gs://bucket`, `https://example.com`, and without a scheme
`git@example.com`, `example.com:5000`, `example.com/path` or `192.0.2.1`, unless that is the job's own host. With a
name after it, `${bucket}-data` is another bucket."""
_HOST_NAMES: Final = re.compile(
    r"(?<![a-z])(?:hosts?|urls?|uri|addr(?:ess)?|endpoint|server|api)(?![a-z])", re.IGNORECASE
)
_WORD_ENDS: Final = re.compile(r"[\s'\"?#,;=()]+")
_PARENT_FOLDER: Final = ".."
_GCS: Final = "/gcs/"
_BUCKETS: Final = ("gs://", _GCS, "${bucket}")
_DIGEST: Final = "@sha256:"
_PROJECT_REGISTRY: Final = re.compile(
    r"(?:[a-z0-9$\{}-]+-docker\.pkg\.dev|(?:[a-z0-9-]+\.)?gcr\.io)/"
)
LATEST: Final = "latest"


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
    new = {name for name in new if not _is_read(name, change, comparison)}
    known = _known_references(comparison) if new and not comparison.is_kept(change.scope) else set()
    return sorted(new - known)


def _is_read(reference: str, change: FactChange, comparison: Comparison) -> bool:
    """Return True for a bucket that the environment reads, which has a sentence of its own where it is new."""
    url = f"gs://{reference.removeprefix(_GCS)}" if reference.startswith(_GCS) else reference
    return comparison.pair(Scope(change.scope.environment), "bucket to read", url)[1] is not ABSENT


# Cached, as each new address is looked up in all texts of the base.
@lru_cache(maxsize=1)
def _known_references(comparison: Comparison) -> set[str]:
    return _references([text for texts in comparison.known_texts.values() for text in texts])


def _other_bucket(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    return tuple(name for name in _new_references(change, comparison) if name.startswith(_BUCKETS))[
        :1
    ]


def _other_address(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Return the first new address; without a scheme, a path or a port, only a name that means a host shows one."""
    references, text = _new_references(change, comparison), str(change.after)
    is_host = _HOST_NAMES.search(str(change.name[-1])) and re.fullmatch(
        rf"{_HOST}|[\w-]+:[0-9]{{2,5}}", text
    )
    is_new = text != change.before and all(
        text not in texts for texts in comparison.known_texts.values()
    )
    return tuple(references[:1]) or ((text,) if is_host and is_new else ())


def _leads_out(change: FactChange, _: Comparison) -> tuple[str, ...]:
    """Return the first new path that leaves a folder: `${bucket}/../other` can be a file of another bucket."""
    old, new = (
        dict.fromkeys(
            word
            for text in texts_of(value)
            if _PARENT_FOLDER in text
            for word in _WORD_ENDS.split(text)
        )
        for value in change.values
    )
    return tuple(word for word in new if _PARENT_FOLDER in word.split("/")[1:] and word not in old)[
        :1
    ]


def addresses(kind: str) -> tuple[Meaning, ...]:
    """Return the rows about addresses in a text."""
    return (
        Meaning(kind, Risk.CAUTION, "{} is not the environment's bucket", _other_bucket),
        Meaning(kind, Risk.CAUTION, "{} is a new address", _other_address),
        Meaning(
            kind,
            Risk.CAUTION,
            "{} leads out of its folder, and can lead to another bucket",
            _leads_out,
        ),
    )


# Images


def _other_image(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Return the name of an image that no job of the base has.

    Without a job in the base, an image from a registry of a Google Cloud project is usual.
    """
    if not isinstance(change.after, str):
        return ()
    name = _image_name(change.after)
    texts = [
        text
        for kind, texts in comparison.known_texts.items()
        if kind.endswith("image")
        for text in texts
    ]
    known = {_image_name(text) for text in (*texts, *texts_of(change.before))}
    is_usual = name in known if known else _PROJECT_REGISTRY.match(name)
    return () if is_usual else (name,)


def _image_name(image: str) -> str:
    """Return an image without its tag and digest."""
    registry, separator, name = image.partition("@")[0].rpartition("/")
    return f"{registry}{separator}{name.partition(':')[0]}"


def _loses_digest(change: FactChange, _: Comparison) -> bool:
    return (
        _DIGEST in str(change.before)
        and change.after is not ABSENT
        and _DIGEST not in str(change.after)
    )


def _becomes_mutable(change: FactChange, _: Comparison) -> bool:
    return _is_mutable(change.after) and not _is_mutable(change.before)


def _is_mutable(image: Any) -> bool:
    """Return True if an image has neither a digest nor a tag with a number in it."""
    if not isinstance(image, str) or _DIGEST in image:
        return False
    return re.search(r":.*(?:[0-9]|\$\{)", image.rpartition("/")[2]) is None


def image(pattern: str) -> tuple[Meaning, ...]:
    """Return the rows about the address of an image."""
    return (
        caution(pattern, "code comes from {}", _other_image),
        caution(pattern, "the digest that fixed its content is gone", _loses_digest),
        caution(pattern, "its tag can mean another image at any time", _becomes_mutable),
    )


_MOUNT_FOLDERS: Final = (
    "/data",
    "/datasets",
    "/mnt",
    "/gcs",
    "/checkpoints",
    "/output",
    "/tmp",  # noqa: S108 - the container's, not this machine's
    "/cache",
)
"""Folders in which no image has its program."""
_RESERVATION: Final = "reservation "
_LOADING: Final = (
    *("LD_*", "PYTHON*", "PIP_*", "UV_*", "PATH", "BASH_ENV", "GCONV_PATH", "*_LIBRARY_PATH*"),
    *(
        "PERL5*",
        "RUBY*",
        "NODE_*",
        "JAVA_*",
        "GIT_*",
        "OPENSSL_*",
        "HOME",
        "XDG_*",
        "*_MODULES_CACHE",
        "*_EXTENSIONS_DIR",
    ),
)
"""Variables by which a program, or another one that it starts, loads code."""
_NOT_LOADING: Final = frozenset(
    f"PYTHON{name}"
    for name in (
        "UNBUFFERED",
        "DONTWRITEBYTECODE",
        "HASHSEED",
        "FAULTHANDLER",
        "IOENCODING",
        "UTF8",
    )
)
_LEADING: Final = (
    *(
        "*_PROXY",
        "*_proxy",
        "*_CERT_FILE",
        "*_CERT_DIR",
        "*_CA_BUNDLE",
        "*_ENDPOINT",
        "*_BASE_URL",
        "*_HOST",
    ),
    *("*_REGISTRY", "NETRC"),
)
"""Variables that decide where its traffic goes."""
_OTHER_WAY: Final = "the program's traffic takes another way"
_READ_ONLY_SOURCES: Final = (
    "volumes.*.emptyDir",
    "valueFrom.fieldRef",
    "valueFrom.resourceFieldRef",
)
"""Fields of a pod by which it gets an empty folder, or what it is itself."""


# Conditions


def _is_unreserved(change: FactChange, _: Comparison) -> bool:
    return change.before is not ABSENT and not str(change.after).startswith(_RESERVATION)


def _is_of_other_project(change: FactChange, _: Comparison) -> bool:
    return str(change.after).startswith(f"{_RESERVATION}projects/")


def _fewer_restarts(change: FactChange, _: Comparison) -> bool:
    """Apply to fewer restarts than before; without the setting there are none, or as many as the service has."""
    old, new = (0 if value is ABSENT else value for value in change.values)
    return bool(new < old) or change.after == 0


def _other_secret(change: FactChange, _: Comparison) -> bool:
    old, new = (str(value).rpartition("/")[0] for value in change.values)
    return change.after is not ABSENT and (change.before is ABSENT or old != new)


def _at_latest(change: FactChange, _: Comparison) -> bool:
    return str(change.after).endswith(f"/{LATEST}")


def _over_program(change: FactChange, _: Comparison) -> bool:
    path = str(change.name[1])
    return change.before is ABSENT and not any(
        f"{path}/".startswith(f"{folder}/") for folder in _MOUNT_FOLDERS
    )


def _is_wider(change: FactChange, _: Comparison) -> bool:
    """Apply to a mount of a folder that contains the one before."""
    return change.after is not ABSENT and str(change.before).startswith(
        f"{str(change.after).rstrip('/')}/"
    )


def _longer(change: FactChange, _: Comparison) -> tuple[str, ...]:
    if ABSENT in change.values:
        return ()
    factor = Fraction(Duration.read(change.after).seconds, Duration.read(change.before).seconds)
    return (format_factor(factor),) if factor > 1 else ()


def _loses_limit(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a job without a limit if the one it is compared with has one; if that is none, all jobs of the base."""
    if kept(change, comparison):
        # What limits each attempt is a limit too.
        return change.after is not ABSENT and (
            change.before is ABSENT or change.after == NO_DURATION
        )
    kinds = comparison.known_texts
    return added(change, comparison) and bool(kinds) and str(change.name[0]) not in kinds


def _is_compiled(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a job whose step was compiled before."""
    return comparison.pair(change.scope, "step to compile")[0] is not ABSENT


def _is_on(change: FactChange, _: Comparison) -> bool:
    return change.after is not ABSENT and change.after is not False


def _loses(*placeholders: str) -> Condition:
    """Return a condition that applies to a value that had one of these placeholders, and has none of them now."""

    def has_one(value: Any) -> bool:
        return any(placeholder in text for text in texts_of(value) for placeholder in placeholders)

    return lambda change, _: has_one(change.before) and not has_one(change.after)


def _leaves_bucket(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a folder that was in the bucket, but for one with data that the environment reads now."""
    own = f"gs://{comparison.pair(Scope(change.scope.environment), 'environment', 'bucket')[1]}"
    references = _references(change.after)
    is_kept = bool(references) and all(
        each == own or _is_read(each, change, comparison) for each in references
    )
    leaves = _loses("${run_dir}", "${job_dir}", "${run_root}", *(() if is_kept else ("${bucket}",)))
    was_mounted, is_mounted = (_in_mount(change, comparison, index) for index in (0, 1))
    is_local = any(text.startswith("/") for text in texts_of(change.after))
    return bool(leaves(change, comparison)) or (was_mounted and is_local and not is_mounted)


def _is_mounted(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a folder that is a mount of the job, or in one."""
    return _in_mount(change, comparison, 1)


def _in_mount(change: FactChange, comparison: Comparison, index: int) -> bool:
    """Return True if a value before (0) or after (1) is a folder in a mount; Vertex AI mounts each bucket at `/gcs`."""
    texts = texts_of(change.values[index])
    if any(text.startswith(_GCS) for text in texts):
        return True
    folders = [PurePosixPath(text) for text in texts]
    lineage = [str(path) for folder in folders for path in (folder, *folder.parents)]
    return any(
        comparison.pair(change.scope, "mount", path)[index] is not ABSENT for path in lineage
    )


def _leads_elsewhere(change: FactChange, _: Comparison) -> bool:
    """Apply to a variable that can have the effect of its row: some of Python's load nothing."""
    return _NOT_LOADING.isdisjoint(map(str, change.name))


def _variables(pattern: str) -> Iterator[Meaning]:
    """Yield the rows about variables that decide what code runs, and where its traffic goes."""
    for names, consequence in ((_LOADING, _OTHER_CODE), (_LEADING, _OTHER_WAY)):
        yield from (caution(pattern.format(name), consequence, _leads_elsewhere) for name in names)


def _folders(pattern: str) -> Iterator[Meaning]:
    """Yield the rows about a folder of the job that becomes another one."""
    of_job = _loses("${run_dir}", "${job_dir}", "${run_folder}", "${run_root}")
    mounted = all_of(_leaves_bucket, _is_mounted)
    yield caution(pattern, "the program writes to a mounted bucket, to what is there", mounted)
    yield caution(
        pattern, "what the program writes there is no longer kept in the bucket", _leaves_bucket
    )
    yield caution(pattern, "jobs can write to one folder, and change each other's files", of_job)


_LOADED: Final = re.compile(
    r"(?i)(?<![a-z])(?:resume|restore|overwrite|keep|retention|purge|reset|scratch)(?![a-z])"
)
"""Words in the names of what decides which checkpoints are kept and loaded."""


_UNSAFE: Final = re.compile(
    r"trust[-_]?remote|pickle|unsafe|insecure|weights[-_]?only|verify", re.IGNORECASE
)
"""Words in the names of switches by which a program loads code, or checks less."""


def is_unsafe(change: FactChange, _: Comparison) -> bool:
    """Apply to a switch that is set, and is named after what is not safe."""
    return change.after is not ABSENT and _UNSAFE.search(str(change.name[-1])) is not None


def _of_checkpoints(change: FactChange, _: Comparison) -> bool:
    """Apply to an argument or a variable that is named after checkpoints."""
    name = str(change.name[-1])
    return names_checkpoints(name) or _LOADED.search(name) is not None


def _other_target(change: FactChange, comparison: Comparison) -> bool:
    old, new = comparison.pair(change.scope, "target")
    return kept(change, comparison) and old != new


def _left_behind(change: FactChange, comparison: Comparison) -> bool:
    """Apply to a setting of another target than before, unless it limited the hosts."""
    is_limit = (
        change.after is ABSENT and change.name[1] in TARGET_FACTS["compute-engine"].host_settings
    )
    is_open = change.name[1] == "external_ips" and True in change.values
    return (
        _other_target(change, comparison) and ABSENT in change.values and (not is_limit or is_open)
    )


def _other_region(change: FactChange, comparison: Comparison) -> bool:
    old, new = comparison.pair(Scope(change.scope.environment), "environment", "region")
    return kept(change, comparison) and old != new


def _is_default(change: FactChange, _: Comparison) -> bool:
    """Apply to a value that means the same as none."""
    return {*change.values} <= {ABSENT, "default"}


# The table


_NETWORK: Final = "the job runs in another network"
_OTHER_PROGRAM: Final = "another program runs in the job"
_OTHER_CODE: Final = "the program can load other code"
LESS_SAFE: Final = "the program can load code, or checks less"
_ADDRESSES: Final = "hosts get addresses on the internet"
_REGISTRY: Final = "images come from a registry with its own credentials"
_PLACEMENT: Final = "the nodes of a slice are chosen in another way"
_RIGHTS: Final = (
    "the program acts with other rights, accounts or tokens, or gets files from elsewhere"
)
_SAVED: Final = (
    "it decides which checkpoints are written, kept and loaded, and so what a failure loses"
)
_UNLIMITED: Final = "nothing limits the whole time of a run ({after})"
_GRANTED: Final = "the program gets its value, and the stack grants the jobs' account access to it"
_CREDENTIALS: Final = (
    "valueFrom",
    "envFrom",
    "imagePullSecrets",
    "serviceAccount*",
    "automountServiceAccountToken",
)
_OPENING: Final = {
    _RIGHTS: ("volumes", *_CREDENTIALS),
    "people can open a shell in the running job": ("enableWebAccess",),
    "people can open a dashboard of the running job": ("enableDashboardAccess",),
    "people can log in to the hosts": ("*ssh*", "*oslogin*", "*serial-port*"),
    _ADDRESSES: ("enableExternalIps", "accessConfigs"),
    "hosts can send packets under other addresses": ("canIpForward",),
}


def _values(kind: str) -> tuple[Meaning, ...]:
    """Return the rows about the values that a program gets: arguments, or variables."""
    return (*addresses(kind), *_folders(kind), caution(kind, _SAVED, all_of(kept, _of_checkpoints)))


_PROGRAM: Final = (
    silent("target"),
    *image("image"),
    *image("worker image"),
    *addresses("package"),
    caution("module", _OTHER_PROGRAM),
    caution("command", _OTHER_PROGRAM, always),
    *_values("argument.*"),
    caution("argument.*", LESS_SAFE, is_unsafe),
    caution("variable.*", LESS_SAFE, is_unsafe),
    *image("argument.*image"),
    *image("variable.*IMAGE"),
    *_variables("variable.{}"),
    access(
        "variable.GOOGLE_APPLICATION_CREDENTIALS", "the program acts as another account", always
    ),
    *_values("variable.*"),
    *addresses("XLA flag.*"),
    # Its data and its secrets
    access("secret.*", _GRANTED, _other_secret),
    caution("secret.*", "its value can change between two runs", _at_latest),
    caution(
        "mount.*",
        "what the program writes there stays on the machine, and is lost with it",
        removed,
    ),
    *addresses("mount.*"),
    caution("mount.*", "the program can read and change more of the bucket", _is_wider),
    caution("mount.*", "the bucket's files hide those of the image there", _over_program),
    # Machines, and the length of a run
    caution(
        "capacity", "machines have another price, and can be missing or taken away", _is_unreserved
    ),
    caution(
        "capacity",
        "the reservation belongs to another project, which pays for it",
        _is_of_other_project,
    ),
    silent("zone", _other_region),
    caution("restarts", "a run ends after fewer failures", all_of(kept, _fewer_restarts)),
    Meaning("restarts", Risk.NONE, "a run ends after more failures"),
    caution("exit codes", "other failures end a run"),
    caution("maximum run duration", "nothing else ends a run that hangs", removed),
    caution(
        "maximum run duration", "a run that hangs ends later, and can cost {} as much", _longer
    ),
    caution(
        "step to compile", "another function decides what is known to fit, or none", _is_compiled
    ),
    caution(
        "Python of the compiled step", "another program decides what is known to fit", _is_compiled
    ),
    worse("config", "the config changes in a way that no setting explains: the fold shows it"),
    worse("unlimited run", _UNLIMITED, _loses_limit, "cost of a run not limited"),
    silent("unlimited run"),
)
_OWN_ACCOUNT: Final = "the settings of the new target name none, so jobs run as the stack's own"
_NODES_ACCOUNT: Final = (
    "the stack grants the account the images and, on the network of the host, the bucket"
)
_TARGETS: Final = (
    silent("option.*", _left_behind),
    caution("option.service_account", _OWN_ACCOUNT, all_of(removed, _other_target)),
    access(
        "option.service_account", "jobs run as an account that the stack does not create", is_set
    ),
    access("option.node_service_account", _NODES_ACCOUNT, is_set),
    access("option.host_network", "the program acts as the account of the nodes", becomes(True)),
    caution(
        "option.host_network", "the program acts as the account of its pod", all_of(was(True), kept)
    ),
    access("option.external_ips", _ADDRESSES, all_of(was(False), becomes(True))),
    caution(
        "option.external_ips",
        "the service decides if hosts have addresses on the internet",
        was(False),
    ),
    Meaning("option.network", when=_is_default),
    *(caution(f"option.{name}", _NETWORK) for name in ("network", "subnetwork")),
    caution("option.tags.*", "other firewall rules apply to the hosts"),
    Meaning("option.namespace", when=_is_default),
    caution("option.namespace", "other accounts, quotas and policies apply", always),
    caution(
        "option.max_wait",
        "the request waits without limit, and is billed once it is granted",
        removed,
    ),
    caution("option.data_disks.*", "the program reads and changes other data", always),
    access("option.image_pull_secrets.*", _REGISTRY),
    caution("option.queue", "other quotas apply, or none", existed),
    caution("option.priority", "it decides which pods wait, and which are evicted for others"),
    caution(
        "option.compute_class", "the class decides the machines' capacity, and with it their price"
    ),
    *(caution(f"option.{name}", _PLACEMENT) for name in ("topology_aware", "placement_policy")),
    caution(
        "option.containers_per_host",
        "each host runs as many processes, with equal parts of its chips",
    ),
)
_EXTRA: Final = (
    Meaning("field.**", when=lambda change, _: is_harmless(change.name[1:])),
    *_variables("field.**.env.{}.**"),
    *(Meaning(f"field.**.{name}.**") for name in _READ_ONLY_SOURCES),
    caution("field.**.hostAliases.**", _OTHER_WAY, always),
    *(access(f"field.**.{name}.**", _RIGHTS, always) for name in ("securityContext", "host*")),
    *(
        access(f"field.**.{name}.**", text, _is_on)
        for text, names in _OPENING.items()
        for name in names
    ),
    *image("field.**.image"),
    *image("field.**.imageUri"),
    caution("field.**.*etwork*.**", _NETWORK, always),
    caution("field.**.*ommand", _OTHER_PROGRAM, always),
    caution("field.**.*-script*.**", "it runs as root on every host", always),
    caution("field.**.*ontainers.**.image", _OTHER_PROGRAM, added),
    caution("field.**", "the service acts on it, and no setting of the spec explains it", always),
)
JOB_MEANINGS: Final = (*_PROGRAM, *_TARGETS, *_EXTRA)
