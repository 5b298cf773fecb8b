"""Each row of the table of meanings decides about a change here, with its risk and its words."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from tpucfg.changes.facts import (
    ABSENT,
    UNKNOWN,
    Comparison,
    Fact,
    FactChange,
    Meaning,
    Risk,
    Scope,
    by_name,
    judge,
)
from tpucfg.changes.impact import effect_of, effect_statements
from tpucfg.changes.revision_facts import READ_ONLY
from tpucfg.changes.spec_meanings import MEANINGS

_NONE, _CAUTION, _ACCESS, _LOST = Risk.NONE, Risk.CAUTION, Risk.ACCESS, Risk.DESTRUCTIVE
_A: Final = ABSENT
_TARGETS: Final = {"target": ("cloud-tpu", "compute-engine")}
_COMPILED: Final = {"step to compile": ("a:b", "a:b")}
_NEW: Final = {"target": (_A, "gke")}
_DIGEST: Final = "r.io/a/i@sha256:1"
_POD: Final = ("spec", "replicatedJobs", "slice", "template", "spec", "template", "spec")
_HOST: Final = ("instance", "metadata", "items")


class Example(NamedTuple):
    """A change with the risk that it has, and words of its sentence."""

    name: tuple[str, ...]
    before: Any
    after: Any
    risk: Risk
    words: str
    others: Mapping[str, tuple[Any, Any]] = {}
    """Other facts before and after: `target` of the job, or a key of the environment."""


_LOADING: Final = (
    *("LD_PRELOAD", "PYTHONPATH", "PIP_INDEX_URL", "UV_INDEX", "PATH", "BASH_ENV", "GCONV_PATH"),
    *(
        "X_LIBRARY_PATH",
        "PERL5OPT",
        "RUBYOPT",
        "NODE_OPTIONS",
        "JAVA_TOOL_OPTIONS",
        "GIT_SSH_COMMAND",
    ),
    *("OPENSSL_CONF", "HOME", "XDG_CONFIG_HOME", "HF_MODULES_CACHE", "TORCH_EXTENSIONS_DIR"),
)
_LEADING: Final = (
    "PROXY",
    "proxy",
    "CERT_FILE",
    "CERT_DIR",
    "CA_BUNDLE",
    "ENDPOINT",
    "BASE_URL",
    "HOST",
    "REGISTRY",
)


def _field(*path: str) -> tuple[str, ...]:
    return ("field", *path)


def _pod(*path: str) -> tuple[str, ...]:
    return _field(*_POD, *path)


EXAMPLES: Final = (
    Example(("image",), "r.io/a/i:1", "r.io/b/i:1", _CAUTION, "code comes from r.io/b/i"),
    Example(
        ("image",), _A, "r.io/b/i:1", _CAUTION, "image added (r.io/b/i:1): code comes from r.io/b"
    ),
    Example(
        ("image",), _DIGEST, "r.io/a/i:1", _CAUTION, "the digest that fixed its content is gone"
    ),
    Example(
        ("image",), "r.io/a/i:1", "r.io/a/i:latest", _CAUTION, "its tag can mean another image"
    ),
    Example(
        ("image",), "r.io/a/i:1", "r.io/a/i:2", _NONE, "image changed from r.io/a/i:1 to r.io/a/i:2"
    ),
    Example(("worker image",), "r.io/a/i:1", "r.io/b/i:1", _CAUTION, "code comes from r.io/b"),
    Example(("worker image",), _A, "r.io/b/i:1", _CAUTION, "code comes from r.io/b"),
    Example(
        ("worker image",),
        _DIGEST,
        "r.io/a/i:1",
        _CAUTION,
        "the digest that fixed its content is gone",
    ),
    Example(
        ("worker image",), "r.io/a/i:1", "r.io/a/i", _CAUTION, "its tag can mean another image"
    ),
    Example(("worker image",), "r.io/a/i:1", "r.io/a/i:2", _NONE, "worker image changed"),
    Example(
        ("package",),
        "gs://mine/p-1.tar.gz",
        "gs://theirs/p-1.tar.gz",
        _CAUTION,
        "gs://theirs is not the env",
    ),
    Example(
        ("package",), _A, "https://x.example/p", _CAUTION, "https://x.example is a new address"
    ),
    Example(
        ("package",),
        _A,
        "/gcs/mine/../theirs/p",
        _CAUTION,
        "/gcs/mine/../theirs/p leads out of its folder",
    ),
    Example(("package",), "gs://mine/p-1.tar.gz", "gs://mine/p-2.tar.gz", _NONE, "package changed"),
    Example(("module",), "a.b", "a.c", _CAUTION, "another program runs in the job"),
    Example(
        ("command",), "python3 a.py", "python3 b.py", _CAUTION, "another program runs in the job"
    ),
    Example(("command",), "python3 a.py", _A, _CAUTION, "another program runs in the job"),
    Example(("command",), _A, "python3 b.py", _CAUTION, "another program runs in the job", _NEW),
    Example(("module",), _A, "a.c", _NONE, "module added (a.c)", _NEW),
    Example(("arg style",), "--key=value", "key=value", _NONE, "arg style changed"),
    Example(("runtime version",), "2.1", "2.2", _NONE, "runtime version changed"),
    Example(("Python version",), "3.7", "3.8", _NONE, "Python version changed"),
    Example(
        ("argument", "--a"),
        "1",
        "gs://theirs/x",
        _CAUTION,
        "gs://theirs is not the environment's bucket",
    ),
    Example(
        ("argument", "--a"),
        "1",
        "https://x.example/p",
        _CAUTION,
        "https://x.example is a new address",
    ),
    Example(
        ("argument", "--a"),
        "gs://mine/a",
        "gs://mine/../b",
        _CAUTION,
        "gs://mine/../b leads out of its folder",
    ),
    Example(
        ("argument", "--a"), "1", "x.example:5000", _CAUTION, "x.example:5000 is a new address"
    ),
    Example(("argument", "--a"), "1", "u:p@x.example/p", _CAUTION, "x.example is a new address"),
    Example(
        ("argument", "--a"), "1", "git@x.example:p.git", _CAUTION, "@x.example is a new address"
    ),
    Example(("argument", "--a"), "1", "192.0.2.1", _CAUTION, "192.0.2.1 is a new address"),
    Example(
        ("argument", "--hf_trust_remote_code"),
        _A,
        "true",
        _CAUTION,
        "can load code, or checks less",
    ),
    Example(("variable", "VERIFY_SSL"), "1", "0", _CAUTION, "can load code, or checks less"),
    Example(
        ("probe", "argument", "allow_pickle"), _A, "true", _CAUTION, "can load code, or checks less"
    ),
    Example(
        ("argument", "log_host"), "a", "x.example.com", _CAUTION, "x.example.com is a new address"
    ),
    Example(("argument", "layers"), "a", "x.example.com", _NONE, "argument layers changed"),
    Example(("argument", "--a"), "a", "file:///etc/x", _CAUTION, "file:// is a new address"),
    Example(
        ("argument", "eval_image"), "r.io/a/i:1", "r.io/b/i:1", _CAUTION, "code comes from r.io/b/i"
    ),
    Example(
        ("argument", "eval_image"),
        _DIGEST,
        "r.io/a/i:1",
        _CAUTION,
        "the digest that fixed its content",
    ),
    Example(
        ("argument", "eval_image"),
        "r.io/a/i:1",
        "r.io/a/i:main",
        _CAUTION,
        "its tag can mean another image",
    ),
    Example(
        ("variable", "IMAGE"), "r.io/a/i:1", "r.io/b/i:1", _CAUTION, "code comes from r.io/b/i"
    ),
    Example(
        ("variable", "IMAGE"), _DIGEST, "r.io/a/i:1", _CAUTION, "the digest that fixed its content"
    ),
    Example(
        ("variable", "IMAGE"),
        "r.io/a/i:1",
        "r.io/a/i:main",
        _CAUTION,
        "its tag can mean another image",
    ),
    Example(
        ("argument", "--trust-remote-code"),
        "true",
        _A,
        _NONE,
        "argument --trust-remote-code removed",
    ),
    Example(("argument", "--a"), "1", "127.0.0.1:80", _NONE, "argument --a changed"),
    Example(("argument", "--a"), "1", "trainer.fit:8", _NONE, "argument --a changed"),
    Example(
        ("argument", "--a"),
        "a",
        "${bucket}/../b",
        _CAUTION,
        "${bucket}/../b leads out of its folder",
    ),
    Example(("argument", "--a"), "a", "../b ...", _NONE, "argument --a changed"),
    Example(
        ("argument", "--a"),
        "a",
        "${bucket}-b/c",
        _CAUTION,
        "${bucket}-b is not the environment's bucket",
    ),
    Example(
        ("argument", "--a"),
        "a",
        "${bucket}.x.example",
        _CAUTION,
        "${bucket}.x.example is not the environment's",
    ),
    Example(("argument", "--a"), "a", "${bucket}/b", _NONE, "argument --a changed"),
    Example(("argument", "--a"), "a", "//x.example/p", _CAUTION, "//x.example is a new address"),
    Example(("argument", "--a"), "a", "x.example/p", _CAUTION, "x.example is a new address"),
    Example(
        ("argument", "--a"), "a", "${name}.x.example:80", _CAUTION, "x.example:80 is a new address"
    ),
    Example(
        ("argument", "--a"), "a", "[2001:db8::1]:443", _CAUTION, "[2001:db8::1] is a new address"
    ),
    Example(("argument", "--a"), "a", "data/x.txt", _NONE, "argument --a changed"),
    Example(
        ("argument", "--a"),
        "${run_dir}",
        "/gcs/mine/a",
        _CAUTION,
        "the program writes to a mounted bucket",
    ),
    Example(("argument", "--a"), "${run_dir}", "/var/a", _CAUTION, "no longer kept in the bucket"),
    Example(("argument", "--a"), "${run_dir}", _A, _CAUTION, "no longer kept in the bucket"),
    Example(
        ("argument", "--a"), "${run_dir}", "${bucket}/a", _CAUTION, "jobs can write to one folder"
    ),
    Example(
        ("argument", "base_output_directory"),
        "${run_root}",
        "${bucket}/a",
        _CAUTION,
        "can write to one folder",
    ),
    Example(("argument", "--save_ckpt"), "true", _A, _CAUTION, "which checkpoints are written"),
    Example(("argument", "--no-checkpoints"), _A, None, _CAUTION, "which checkpoints are written"),
    Example(("argument", "save=false"), _A, "", _CAUTION, "which checkpoints are written"),
    Example(("argument", "max_to_keep"), "5", "1", _CAUTION, "which checkpoints are written"),
    Example(("argument", "overwrite"), _A, "true", _CAUTION, "which checkpoints are written"),
    Example(("argument", "from-scratch"), _A, None, _CAUTION, "which checkpoints are written"),
    Example(("argument", "use_savgol"), _A, "true", _NONE, "argument use_savgol added"),
    Example(("argument", "save_steps"), _A, "100", _NONE, "argument save_steps added", _NEW),
    Example(("argument", "--a"), "${bucket}/a", "gs://mine/a", _NONE, "argument --a changed"),
    Example(("argument", "--a"), "/ckpt/a", "/local/a", _CAUTION, "no longer kept in the bucket"),
    Example(("variable", "PYTHONUNBUFFERED"), _A, "1", _NONE, "variable PYTHONUNBUFFERED added"),
    Example(("argument", "--a"), "1", "gs://read/a", _NONE, "argument --a changed"),
    Example(("argument", "--a"), "${bucket}/a", "/gcs/read/a", _NONE, "argument --a changed"),
    Example(
        ("argument", "--a"), "${run_dir}", "gs://read/a", _CAUTION, "no longer kept in the bucket"
    ),
    Example(("variable", "SAVE_CHECKPOINTS"), "1", "0", _CAUTION, "which checkpoints are written"),
    Example(
        ("argument", "run_name"),
        "${run_folder}",
        "shared",
        _CAUTION,
        "jobs can write to one folder",
    ),
    Example(("argument", "--a"), "${run_dir}", "${run_dir}/a", _NONE, "argument --a changed"),
    Example(("argument", "--a"), "1", "2", _NONE, "argument --a changed from 1 to 2"),
    *(
        Example(("variable", name), _A, "x", _CAUTION, "the program can load other code")
        for name in _LOADING
    ),
    *(
        Example(
            ("variable", f"X_{name}"), _A, "x", _CAUTION, "the program's traffic takes another way"
        )
        for name in _LEADING
    ),
    Example(("variable", "NETRC"), _A, "x", _CAUTION, "the program's traffic takes another way"),
    Example(
        ("variable", "GOOGLE_APPLICATION_CREDENTIALS"),
        _A,
        "x",
        _ACCESS,
        "the program acts as another account",
    ),
    Example(
        ("variable", "A"),
        "1",
        "gs://theirs/x",
        _CAUTION,
        "gs://theirs is not the environment's bucket",
    ),
    Example(
        ("variable", "A"),
        "1",
        "https://x.example/p",
        _CAUTION,
        "https://x.example is a new address",
    ),
    Example(("variable", "A"), "1", "/gcs/mine/../b", _CAUTION, "leads out of its folder"),
    Example(("variable", "A"), "1", "2", _NONE, "variable A changed from 1 to 2"),
    Example(
        ("variable", "A"),
        "${job_dir}/a",
        "/gcs/mine/a",
        _CAUTION,
        "the program writes to a mounted bucket",
    ),
    Example(("variable", "A"), "${job_dir}/a", "/var/a", _CAUTION, "no longer kept in the bucket"),
    Example(
        ("variable", "A"), "${job_dir}/a", "${bucket}/a", _CAUTION, "jobs can write to one folder"
    ),
    Example(
        ("variable", "HF_HUB_TRUST_REMOTE_CODE"), _A, "1", _CAUTION, "can load code, or checks less"
    ),
    Example(
        ("XLA flag", "--xla_dump_to"),
        _A,
        "gs://theirs/d",
        _CAUTION,
        "gs://theirs is not the environment's bucket",
    ),
    Example(
        ("XLA flag", "--xla_dump_to"),
        _A,
        "https://x.example/p",
        _CAUTION,
        "https://x.example is a new address",
    ),
    Example(
        ("XLA flag", "--xla_dump_to"), _A, "/gcs/mine/../b", _CAUTION, "leads out of its folder"
    ),
    Example(("XLA flag", "--xla_a"), _A, "", _NONE, "XLA flag --xla_a added"),
    Example(
        ("secret", "T"),
        "hf/1",
        "other/1",
        _ACCESS,
        "the stack grants the jobs' account access to it",
    ),
    Example(
        ("secret", "T"), "hf/1", "hf/latest", _CAUTION, "its value can change between two runs"
    ),
    Example(("secret", "T"), "hf/1", _A, _NONE, "secret T removed (was hf/1)"),
    Example(
        ("mount", "/data"),
        "${bucket}",
        _A,
        _CAUTION,
        "what the program writes there stays on the machine",
    ),
    Example(
        ("mount", "/data"),
        _A,
        "gs://theirs",
        _CAUTION,
        "gs://theirs is not the environment's bucket",
    ),
    Example(
        ("mount", "/data"),
        _A,
        "https://x.example/p",
        _CAUTION,
        "https://x.example is a new address",
    ),
    Example(("mount", "/data"), _A, "gs://mine/../b", _CAUTION, "leads out of its folder"),
    Example(
        ("mount", "/data"),
        "${bucket}/x",
        "${bucket}",
        _CAUTION,
        "can read and change more of the bucket",
    ),
    Example(("mount", "/data"), "${bucket}/x", "${bucket}/y", _NONE, "mount /data changed"),
    Example(
        ("mount", "/app"),
        _A,
        "${bucket}/x",
        _CAUTION,
        "the bucket's files hide those of the image there",
    ),
    Example(("mount", "/data"), _A, "${bucket}/x", _NONE, "mount /data added"),
    Example(("capacity",), "on-demand", "spot", _CAUTION, "machines have another price"),
    Example(("capacity",), "on-demand", "flex-start", _CAUTION, "machines have another price"),
    Example(("capacity",), "spot", "on-demand", _CAUTION, "machines have another price"),
    Example(
        ("capacity",), "spot", "the node pool decides", _CAUTION, "machines have another price"
    ),
    Example(
        ("capacity",), "spot", "reservation r", _NONE, "capacity changed from spot to reservation r"
    ),
    Example(
        ("capacity",),
        "spot",
        "reservation projects/p/reservations/r",
        _CAUTION,
        "belongs to another project",
    ),
    Example(("machine type",), "a", "b", _NONE, "machine type changed"),
    Example(("topology",), "2x2", "2x4", _NONE, "topology changed"),
    Example(
        ("fallback", "v2-32"), "v2-8", "v3-8", _NONE, "fallback v2-32 changed from v2-8 to v3-8"
    ),
    Example(("zone",), "a", "b", _NONE, "", {"region": ("us-central1", "europe-west4")}),
    Example(("zone",), "a", "b", _NONE, "zone changed from a to b"),
    Example(("restarts",), 3, 0, _CAUTION, "after fewer failures"),
    Example(("restarts",), 1, 3, _NONE, "after more failures"),
    Example(("restarts",), _A, 3, _NONE, "after more failures"),
    Example(("restarts",), _A, 0, _CAUTION, "after fewer failures"),
    Example(
        ("restarts",), 3, _A, _CAUTION, "restarts removed (was 3): a run ends after fewer failures"
    ),
    Example(("exit codes",), "42", _A, _CAUTION, "other failures end a run"),
    Example(("exit codes",), "42", "42, 127-255", _CAUTION, "other failures end a run"),
    Example(("exit codes",), _A, "42", _NONE, "exit codes added (42)", _NEW),
    Example(("maximum run duration",), "12h", _A, _CAUTION, "nothing else ends a run that hangs"),
    Example(
        ("maximum run duration",),
        "12h",
        "1d",
        _CAUTION,
        "a run that hangs ends later, and can cost 2× as much",
    ),
    Example(
        ("maximum run duration",), "1d", "12h", _NONE, "maximum run duration changed from 1d to 12h"
    ),
    Example(("step to compile",), "a:b", _A, _CAUTION, "what is known to fit, or none", _COMPILED),
    Example(
        ("step to compile",), "a:b", "a:c", _CAUTION, "what is known to fit, or none", _COMPILED
    ),
    Example(("step to compile",), _A, "a:b", _NONE, "step to compile added (a:b)"),
    Example(
        ("Python of the compiled step",),
        "a",
        "b",
        _CAUTION,
        "another program decides what is known",
        _COMPILED,
    ),
    Example(("Python of the compiled step",), _A, "b", _NONE, "Python of the compiled step added"),
    # Settings of one target
    Example(("option", "ttl"), _A, "1h", _NONE, "setting ttl added (1h)"),
    Example(("option", "containers_per_host"), _A, 2, _CAUTION, "each host runs as many processes"),
    Example(
        ("option", "containers_per_host"),
        _A,
        2,
        _NONE,
        "setting containers_per_host added (2)",
        _NEW,
    ),
    Example(("option", "disk_gb"), 300, _A, _NONE, "", _TARGETS),
    Example(
        ("option", "service_account"), "a@b", _A, _CAUTION, "jobs run as the stack's own", _TARGETS
    ),
    Example(
        ("option", "service_account"),
        _A,
        "a@b",
        _ACCESS,
        "an account that the stack does not create",
    ),
    Example(("option", "service_account"), "a@b", _A, _NONE, "setting service_account removed"),
    Example(
        ("option", "external_ips"), False, True, _ACCESS, "hosts get addresses on the internet"
    ),
    Example(
        ("option", "external_ips"),
        False,
        _A,
        _CAUTION,
        "the service decides if hosts have addresses",
    ),
    Example(
        ("option", "external_ips"),
        True,
        False,
        _NONE,
        "setting external_ips changed from true to false",
    ),
    Example(("option", "network"), _A, "default", _NONE, "setting network added (default)"),
    Example(("option", "network"), _A, "n", _CAUTION, "the job runs in another network"),
    Example(("option", "network"), _A, "n", _NONE, "setting network added (n)", _NEW),
    Example(("option", "subnetwork"), "n", _A, _CAUTION, "the job runs in another network"),
    Example(("option", "subnetwork"), _A, "n", _NONE, "setting subnetwork added (n)", _NEW),
    Example(
        ("option", "tags", "t"),
        _A,
        "",
        _CAUTION,
        "setting tags.t added: other firewall rules apply",
    ),
    Example(("option", "tags", "t"), _A, "", _NONE, "setting tags.t added", _NEW),
    Example(
        ("option", "namespace"), "default", _A, _NONE, "setting namespace removed (was default)"
    ),
    Example(
        ("option", "namespace"),
        "default",
        "n",
        _CAUTION,
        "other accounts, quotas and policies apply",
    ),
    Example(
        ("option", "data_disks", "d"),
        READ_ONLY,
        _A,
        _CAUTION,
        "the program reads and changes other data",
    ),
    Example(
        ("option", "data_disks", "d"),
        _A,
        READ_ONLY,
        _CAUTION,
        "the program reads and changes other data",
    ),
    Example(
        ("option", "data_disks", "d"),
        _A,
        "read-write",
        _CAUTION,
        "the program reads and changes other data",
    ),
    Example(
        ("option", "image_pull_secrets", "s"),
        _A,
        "",
        _ACCESS,
        "a registry with its own credentials",
    ),
    Example(
        ("option", "image_pull_secrets", "s"), "", _A, _NONE, "setting image_pull_secrets.s removed"
    ),
    Example(("option", "queue"), "q", _A, _CAUTION, "other quotas apply, or none"),
    Example(("option", "queue"), "q", "r", _CAUTION, "other quotas apply"),
    Example(("option", "queue"), _A, "q", _NONE, "setting queue added (q)"),
    Example(("option", "priority"), _A, "p", _CAUTION, "it decides which pods wait"),
    Example(("option", "priority"), _A, "p", _NONE, "setting priority added (p)", _NEW),
    Example(("option", "compute_class"), _A, "c", _CAUTION, "the class decides the machines"),
    Example(("option", "compute_class"), _A, "c", _NONE, "setting compute_class added (c)", _NEW),
    Example(
        ("option", "node_service_account"),
        _A,
        "n@p",
        _ACCESS,
        "the stack grants the account the images",
    ),
    Example(
        ("option", "node_service_account"), "n@p", _A, _NONE, "setting node_service_account removed"
    ),
    Example(
        ("option", "host_network"),
        _A,
        True,
        _ACCESS,
        "the program acts as the account of the nodes",
    ),
    Example(
        ("option", "host_network"),
        _A,
        True,
        _ACCESS,
        "the program acts as the account of the nodes",
        _NEW,
    ),
    Example(
        ("option", "host_network"), True, _A, _CAUTION, "the program acts as the account of its pod"
    ),
    Example(("option", "host_network"), _A, False, _NONE, "setting host_network added (false)"),
    Example(
        ("option", "topology_aware"),
        _A,
        True,
        _CAUTION,
        "nodes of a slice are chosen in another way",
    ),
    Example(
        ("option", "topology_aware"), _A, True, _NONE, "setting topology_aware added (true)", _NEW
    ),
    Example(
        ("option", "placement_policy"),
        _A,
        "p",
        _CAUTION,
        "nodes of a slice are chosen in another way",
    ),
    Example(
        ("option", "placement_policy"), _A, "p", _NONE, "setting placement_policy added (p)", _NEW
    ),
    Example(("option", "disk_gb"), 200, 300, _NONE, "setting disk_gb changed from 200 to 300"),
    Example(("option", "machine"), "basic", "legacy", _NONE, "setting machine changed"),
    Example(("option", "master"), "a", "b", _NONE, "setting master changed"),
    Example(("option", "max_wait"), "1h", "2h", _NONE, "setting max_wait changed from 1h to 2h"),
    Example(
        ("option", "max_wait"),
        "1h",
        _A,
        _CAUTION,
        "waits without limit, and is billed once it is granted",
    ),
    Example(("option", "runtime_version"), "a", "b", _NONE, "setting runtime_version changed"),
    # Derived facts
    *(
        Example(
            ("unlimited run",),
            _A,
            reason,
            _CAUTION,
            f"nothing limits the whole time of a run ({reason})",
        )
        for reason in (
            "set trainer.max_run_duration",
            "a restart after a disruption is not counted",
        )
    ),
    Example(("unlimited run",), "set it", _A, _NONE, ""),
    Example(
        ("rung", "above"),
        "v2-8",
        "4×",
        _NONE,
        "added to the ladder, with 4× the cores of v2-8, the rung below",
    ),
    Example(("rung", "replacing"), "v2-8", "4×", _NONE, "replaces v2-8, with 4× its cores"),
    Example(("rung", "removed"), _A, _A, _NONE, "removed from the ladder"),
    Example(
        ("figure", "learning rate"),
        Fraction(1, 100),
        Fraction(10),
        _CAUTION,
        "1,000× the previous value: the run can diverge",
    ),
    Example(
        ("figure", "learning rate"),
        Fraction(1),
        Fraction(1, 100),
        _CAUTION,
        "0.01× the previous value: the run can diverge",
    ),
    Example(("figure", "learning rate"), Fraction(1), Fraction(1, 10), _NONE, ""),
    # Fields of `extra`
    Example(
        _field("spec", "ttlSecondsAfterFinished"),
        _A,
        3,
        _NONE,
        "field spec.ttlSecondsAfterFinished added (3)",
    ),
    Example(
        _pod("containers", "main", "resources", "requests", "memory"),
        _A,
        "1Gi",
        _NONE,
        "memory added",
    ),
    Example(
        _pod("containers", "main", "resources", "requests", "cpu"), _A, "8", _NONE, "cpu added"
    ),
    Example(
        _field("metadata", "labels", "team"), _A, "a", _NONE, "field metadata.labels.team added (a)"
    ),
    Example(
        _field("metadata", "labels", "team"),
        _A,
        "42",
        _NONE,
        'field metadata.labels.team added ("42")',
    ),
    Example(_field("metadata", "labels", "a.io/team"), _A, "a", _CAUTION, "the service acts on it"),
    Example(
        _field("metadata", "annotations", "team"),
        _A,
        "a",
        _NONE,
        "field metadata.annotations.team added (a)",
    ),
    Example(
        _pod("volumes", "shm", "emptyDir", "medium"), _A, "Memory", _NONE, "emptyDir.medium added"
    ),
    Example(
        _pod("containers", "c", "env", "N", "valueFrom", "fieldRef", "fieldPath"),
        _A,
        "x",
        _NONE,
        "added (x)",
    ),
    Example(
        _pod("containers", "c", "env", "N", "valueFrom", "resourceFieldRef", "resource"),
        _A,
        "x",
        _NONE,
        "added",
    ),
    *(
        Example(
            _pod("containers", "c", "env", name, "value"),
            _A,
            "x",
            _CAUTION,
            "the program can load other code",
        )
        for name in _LOADING
    ),
    *(
        Example(
            _pod("containers", "c", "env", f"X_{name}", "valueFrom", "fieldRef"),
            _A,
            "x",
            _CAUTION,
            "another way",
        )
        for name in _LEADING
    ),
    Example(
        _pod("containers", "c", "env", "NETRC", "valueFrom", "fieldRef"),
        _A,
        "x",
        _CAUTION,
        "another way",
    ),
    Example(
        _pod("securityContext", "runAsUser"), _A, 0, _ACCESS, "other rights, accounts or tokens"
    ),
    Example(
        _pod("hostAliases", "0", "ip"),
        _A,
        "10.0.0.9",
        _CAUTION,
        "the program's traffic takes another way",
    ),
    Example(_pod("hostPID"), _A, True, _ACCESS, "other rights, accounts or tokens"),
    Example(
        _pod("volumes", "v", "secret", "secretName"), _A, "s", _ACCESS, "gets files from elsewhere"
    ),
    Example(_pod("automountServiceAccountToken"), _A, True, _ACCESS, "accounts or tokens"),
    Example(
        _pod("containers", "c", "env", "N", "valueFrom", "secretKeyRef", "name"),
        _A,
        "s",
        _ACCESS,
        "tokens",
    ),
    Example(
        _pod("containers", "c", "envFrom", "0", "secretRef", "name"),
        _A,
        "s",
        _ACCESS,
        "accounts or tokens",
    ),
    Example(_pod("imagePullSecrets", "s"), _A, "s", _ACCESS, "accounts or tokens"),
    Example(_pod("serviceAccountName"), _A, "a", _ACCESS, "other rights, accounts or tokens"),
    Example(
        _field("enableWebAccess"), _A, True, _ACCESS, "people can open a shell in the running job"
    ),
    Example(
        _field("enableDashboardAccess"),
        _A,
        True,
        _ACCESS,
        "people can open a dashboard of the running job",
    ),
    Example(
        _field("tpu", "networkConfig", "enableExternalIps"),
        _A,
        True,
        _ACCESS,
        "addresses on the internet",
    ),
    Example(
        _field("instance", "networkInterfaces", "0", "accessConfigs", "a"),
        _A,
        "b",
        _ACCESS,
        "on the internet",
    ),
    Example(
        _field("tpu", "networkConfig", "canIpForward"),
        _A,
        True,
        _ACCESS,
        "send packets under other",
    ),
    Example(
        _field(*_HOST, "ssh-keys", "value"), _A, "me", _ACCESS, "people can log in to the hosts"
    ),
    Example(
        _field(*_HOST, "enable-oslogin", "value"),
        _A,
        "FALSE",
        _ACCESS,
        "people can log in to the hosts",
    ),
    Example(
        _field(*_HOST, "serial-port-enable", "value"),
        _A,
        "1",
        _ACCESS,
        "people can log in to the hosts",
    ),
    Example(
        _pod("containers", "c", "image"),
        "r.io/a/i:1",
        "r.io/b/i:1",
        _CAUTION,
        "code comes from r.io/b/i",
    ),
    Example(_pod("containers", "c", "image"), _A, "r.io/b/i:1", _CAUTION, "code comes from r.io/b"),
    Example(
        _pod("containers", "c", "image"),
        _DIGEST,
        "r.io/a/i:1",
        _CAUTION,
        "the digest that fixed its content",
    ),
    Example(
        _pod("containers", "c", "image"),
        "r.io/a/i:1",
        "r.io/a/i",
        _CAUTION,
        "its tag can mean another image",
    ),
    Example(
        _field("a", "imageUri"), "r.io/a/i:1", "r.io/b/i:1", _CAUTION, "code comes from r.io/b"
    ),
    Example(_field("a", "imageUri"), _A, "r.io/b/i:1", _CAUTION, "code comes from r.io/b"),
    Example(
        _field("a", "imageUri"),
        _DIGEST,
        "r.io/a/i:1",
        _CAUTION,
        "the digest that fixed its content is gone",
    ),
    Example(
        _field("a", "imageUri"),
        "r.io/a/i:1",
        "r.io/a/i",
        _CAUTION,
        "its tag can mean another image",
    ),
    Example(_field("network"), _A, "n", _CAUTION, "the job runs in another network"),
    Example(
        _field("containerSpec", "command"), _A, ["x"], _CAUTION, "another program runs in the job"
    ),
    Example(
        _field("node", "metadata", "shutdown-script"),
        _A,
        "x",
        _CAUTION,
        "it runs as root on every host",
    ),
    Example(
        _pod("initContainers", "c", "image"),
        _A,
        "r.io/a/known:2",
        _CAUTION,
        "another program runs in the job",
    ),
    Example(_field("enableWebAccess"), True, False, _CAUTION, "the service acts on it"),
    Example(
        ("config",), "", "changed", _CAUTION, "the config changes in a way that no setting explains"
    ),
    Example(("figure", "steps"), 1, 2, _NONE, ""),
    Example(
        ("figure", "save_steps"),
        100,
        200,
        _CAUTION,
        "save_steps: a run writes 0.5× as many checkpoints",
    ),
    Example(("figure", "save_steps"), 100, 199, _NONE, ""),
    Example(("target",), "a", "b", _NONE, ""),
)
_SPEC: Final = (
    Example(("project", "name"), "a", "b", _ACCESS, "project renamed from a to b"),
    Example(("project", "spec"), "a", "b", _NONE, "spec moved from a to b"),
    Example(
        ("training", "tuned_on"),
        "v2-8",
        "v2-32",
        _NONE,
        "tuned_on changed from v2-8 to v2-32: all rungs",
    ),
    Example(("training", "learning_rate"), "0.1", "0.2", _NONE, ""),
    Example(("environment",), _A, "x on gke", _NONE, "new environment: x on gke"),
    Example(("environment",), "x on gke", _A, _NONE, "until you run pulumi destroy --stack dev"),
    Example(("protected environment",), _A, "x on gke", _NONE, "new environment: x on gke"),
    Example(("protected environment",), "x", _A, _LOST, "and Pulumi refuses to delete them"),
    Example(
        ("training", "model_parallel"), 1, 2, _NONE, "setting model_parallel changed from 1 to 2"
    ),
    Example(("training", "grad_accum"), _A, 2, _NONE, "setting grad_accum added (2)"),
    Example(
        ("training", "batch_rule"),
        "per_core",
        "keep",
        _NONE,
        "setting batch_rule changed from per_core to keep",
    ),
    Example(
        ("training", "sequence_length"), 1, 2, _NONE, "setting sequence_length changed from 1 to 2"
    ),
    Example(
        ("training", "learning_rate"), "0.1", _A, _NONE, "setting learning_rate removed (was 0.1)"
    ),
    Example(
        ("training", "learning_rate_rule"),
        "keep",
        "sqrt",
        _NONE,
        "setting learning_rate_rule changed from keep to sqrt",
    ),
    Example(("training", "learning_rate_rule"), "keep", _A, _NONE, ""),
    Example(
        ("flag", "epochs"),
        "--epochs",
        None,
        _CAUTION,
        "epochs is no longer passed to the program (was --epochs)",
    ),
    Example(
        ("flag", "epochs"),
        None,
        "--epochs",
        _NONE,
        "epochs is now passed to the program as --epochs",
    ),
    Example(
        ("flag", "epochs"),
        "--a",
        "--b",
        _CAUTION,
        "flag for epochs changed from --a to --b: a program",
    ),
    Example(("allow", "TPU021"), _A, "why", _CAUTION, "TPU021, an error, is now allowed (why)"),
    Example(("allow", "TPU041"), _A, "why", _NONE, "TPU041 is now allowed (why)"),
    Example(("allow", "TPU041"), "why", _A, _NONE, "TPU041 is no longer allowed"),
    Example(("allow", "TPU041"), "a", "b", _NONE, "reason for allowing TPU041 changed from a to b"),
    Example(("probe", "steps"), _A, 50, _NONE, "steps of probes added (50)"),
    Example(("probe", "steps"), 50, _A, _NONE, "steps of probes removed (was 50)"),
    Example(("probe", "steps"), 50, 70, _NONE, "steps of probes changed from 50 to 70"),
    Example(
        ("probe", "argument", "a"),
        "a",
        "gs://theirs/x",
        _CAUTION,
        "is not the environment's bucket",
    ),
    Example(
        ("probe", "argument", "a"),
        "a",
        "https://x.example/p",
        _CAUTION,
        "https://x.example is a new address",
    ),
    Example(("probe", "argument", "a"), "a", "${bucket}/../b", _CAUTION, "leads out of its folder"),
    Example(("probe", "argument", "profiler"), "a", "xplane", _NONE, "probe argument"),
    Example(
        ("tune", "args", "a"), _A, ["gs://theirs/x"], _CAUTION, "is not the environment's bucket"
    ),
    Example(
        ("tune", "args", "a"),
        _A,
        ["https://x.example/p"],
        _CAUTION,
        "https://x.example is a new address",
    ),
    Example(("tune", "args", "a"), _A, ["${bucket}/../b"], _CAUTION, "leads out of its folder"),
    Example(("tune", "sizes"), _A, ["v2-8"], _NONE, "searched value sizes added"),
    Example(("gate", "fit"), True, _A, _CAUTION, "the gate is less strict, or another one"),
    Example(("gate", "fit"), _A, True, _NONE, "the gate is stricter"),
    Example(("gate", "metric"), "a", _A, _CAUTION, "the gate is less strict, or another one"),
    Example(("gate", "metric"), _A, "a", _NONE, "the gate is stricter"),
    Example(("gate", "min_scaling_efficiency"), 0.8, 0.9, _NONE, "the gate is stricter"),
    Example(("gate", "max_drop"), 0.2, 0.1, _NONE, "the gate is stricter"),
    Example(("gate", "min_scaling_efficiency"), 0.9, 0.8, _CAUTION, "the gate is less strict"),
    Example(("gate", "max_drop"), 0.1, 0.2, _CAUTION, "the gate is less strict"),
    Example(("gate", "metric"), "a", "b", _CAUTION, "the gate is less strict, or another one"),
    Example(("gate", "max_usd"), _A, 2000, _NONE, "the gate is stricter"),
    Example(("gate", "max_usd"), 2000, _A, _CAUTION, "the gate is less strict"),
    Example(("gate", "max_usd"), 2000, 1000, _NONE, "the gate is stricter"),
    Example(("gate", "max_usd"), 2000, 3000, _CAUTION, "the gate is less strict"),
    Example(
        ("price", "v2", "spot"),
        _A,
        "1",
        _CAUTION,
        "price v2.spot added (1): costs are computed from prices that the base has",
    ),
    Example(("price", "v2"), "1", _A, _CAUTION, "computed from prices that the base has"),
    Example(
        ("price", "v2"),
        "1.5",
        "0.3",
        _CAUTION,
        "price v2 changed from 1.5 to 0.3: everything looks cheaper",
    ),
    Example(("price", "v2"), "1", "2", _NONE, "price v2 changed from 1 to 2"),
    Example(
        ("environment", "project"),
        "a",
        "b",
        _CAUTION,
        "jobs run in another project, which pays for them",
    ),
    Example(
        ("environment", "region"),
        "a",
        "b",
        _NONE,
        "setting region changed from a to b",
        {"bucket": ("a", "b")},
    ),
    Example(
        ("environment", "target"),
        "gke",
        "vertex-ai",
        _NONE,
        "setting target changed from gke to vertex-ai",
    ),
    Example(
        ("environment", "bucket"),
        "a",
        "b",
        _CAUTION,
        "the old one stays with its",
        {"protect": (True, True)},
    ),
    Example(
        ("environment", "bucket"),
        "a",
        "b",
        _CAUTION,
        "the old one stays with its",
        {"keep_data": (True, True)},
    ),
    Example(("environment", "bucket"), "a", "b", _LOST, "the old one is deleted with its objects"),
    Example(
        ("environment", "bucket"),
        "a",
        "b",
        _CAUTION,
        "and lose the access",
        {"existing_bucket": (True, True)},
    ),
    Example(
        ("bucket of others",),
        _A,
        "b",
        _ACCESS,
        "b, a bucket that the stack does not make",
        {"bucket": ("a", "b")},
    ),
    Example(("bucket of others",), _A, "mine", _NONE, ""),
    Example(("environment", "existing_bucket"), _A, True, _NONE, "", {"bucket": ("a", "b")}),
    Example(
        ("environment", "region"),
        "a",
        "b",
        _CAUTION,
        "the bucket mine is the same, and cannot move",
    ),
    Example(("environment", "protect"), True, False, _LOST, "protection lifted"),
    Example(
        ("environment", "protect"), False, True, _NONE, "setting protect changed from false to true"
    ),
    Example(
        ("environment", "keep_data"), True, False, _LOST, "keep_data disabled: a bucket removed"
    ),
    Example(
        ("environment", "keep_data"),
        False,
        True,
        _NONE,
        "setting keep_data changed from false to true",
    ),
    Example(
        ("environment", "kube_context"),
        "a",
        "b",
        _CAUTION,
        "to another cluster",
        {"target": ("gke", "gke")},
    ),
    Example(
        ("environment", "kube_context"), "a", "b", _NONE, "setting kube_context changed from a to b"
    ),
    Example(
        ("environment", "cluster"),
        "a",
        "b",
        _CAUTION,
        "to another cluster",
        {"target": ("gke", "gke")},
    ),
    Example(("environment", "cluster"), "a", "b", _NONE, "setting cluster changed from a to b"),
    Example(
        ("environment", "existing_bucket"),
        _A,
        True,
        _NONE,
        "kept with its",
        {"keep_data": (True, True)},
    ),
    Example(
        ("environment", "existing_bucket"), _A, True, _LOST, "which deletes it with its objects"
    ),
    Example(("environment", "existing_bucket"), True, _A, _NONE, "the stack makes the bucket"),
    Example(("environment", "kms_key"), "a", "b", _CAUTION, "encrypted by another key"),
    Example(("environment", "soft_delete_days"), 30, 7, _CAUTION, "restored for fewer days"),
    Example(("environment", "soft_delete_days"), _A, 0, _CAUTION, "restored for fewer days"),
    Example(
        ("environment", "soft_delete_days"),
        7,
        30,
        _NONE,
        "setting soft_delete_days changed from 7 to 30",
    ),
    Example(("environment", "images"), _A, "granted by others", _NONE, "setting images added"),
    Example(("bucket to read", "gs://a"), _A, "us-east5", _ACCESS, "jobs read another bucket"),
    Example(
        ("bucket to read", "gs://a"),
        "us-east5",
        "us-west4",
        _NONE,
        "bucket to read gs://a changed from",
    ),
    Example(("label", "team"), "a", "b", _NONE, "label team changed from a to b"),
)


def _judge(example: Example, scope: Scope) -> tuple[Meaning, tuple[str, ...]]:
    """Return the meaning of an example in a job that is kept, unless its facts say otherwise."""
    others = {
        "bucket": ("mine", "mine"),
        "region": ("r", "r"),
        "target": ("vertex-ai", "vertex-ai"),
        **example.others,
    }
    facts: tuple[list[Fact], list[Fact]] = ([], [])
    for key, values in others.items():
        for revision, value in zip(facts, values, strict=True):
            if value is not ABSENT:
                revision.append(Fact(Scope("dev"), ("environment", key), value))
                revision.append(Fact(scope, (key,), value))
    for revision in facts:
        revision.append(Fact(Scope("dev"), ("bucket to read", "gs://read"), "us-east5"))
        revision.append(Fact(scope, ("figure", "steps"), Fraction(1000)))
        revision.append(Fact(scope, ("mount", "/ckpt"), "${bucket}/ckpt"))
    change = FactChange(scope, example.name, example.before, example.after)
    known = [Fact(Scope("prod"), ("image",), "r.io/a/known:1")]
    return judge(change, MEANINGS, Comparison(by_name(facts[0]), by_name(facts[1]), known))


_CASES: Final = (
    *((item, Scope("dev", "v2-8")) for item in EXAMPLES),
    *((item, Scope("dev")) for item in _SPEC),
)


def test_a_change_has_its_risk_and_its_words() -> None:
    """The risk of a row and its consequence are here a second time, so that no edit of the table goes unseen."""
    for example, scope in _CASES:
        meaning, values = _judge(example, scope)
        change = FactChange(scope, example.name, example.before, example.after)
        (located,) = effect_statements([(scope, effect_of(change, meaning, values))], lambda _: "")
        assert located.statement.risk is example.risk, example
        assert example.words in located.plain, example
        assert meaning.is_silent == (not example.words), example


def test_every_row_decides_about_an_example() -> None:
    """No row is hidden behind an earlier one."""
    used = {id(_judge(example, scope)[0]) for example, scope in _CASES}
    assert [row for row in MEANINGS if id(row) not in used] == []


def test_a_change_that_no_row_knows_is_a_caution() -> None:
    """A setting that a target gets later needs no row to be seen."""
    assert (
        _judge(Example(("option", "later"), _A, "x", _CAUTION, ""), Scope("dev", "v2-8"))[0]
        is UNKNOWN
    )
    assert UNKNOWN.risk is Risk.CAUTION
