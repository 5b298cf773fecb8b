"""Table of the fields of configs: what each is called in a review, and which of its values are dangerous.

A field that no row names is reported by its path, without a risk. The patterns are paths of configs whose command lines
and variables are parsed, for every target: names of fields mean the same wherever Kubernetes or Google use them.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final, Literal, NamedTuple

from tpucfg.changes.facts import ABSENT
from tpucfg.changes.statements import Risk
from tpucfg.paths import pattern_steps
from tpucfg.yamldoc.document import KeyPath

ARGUMENT: Final = "argument"
VARIABLE: Final = "variable"
IMAGE: Final = "image"
ACCOUNT: Final = "service account"
FOLDER: Final = "output folder"
SCRIPT: Final = "start-up script"
FIELD: Final = "field"
ORDER_OF: Final = "order of"
"""Subjects of fields; those of the job's settings are in `job_settings`."""
_Condition = Callable[[Any, Any], bool]
"""Decides from a value before and after if the change is dangerous."""


class FieldRule(NamedTuple):
    """A kind of field."""

    pattern: str
    """Steps of its path: `*` is any step, `**` any number of steps, and `*` in a word any characters."""
    subject: str
    label: Literal["name", "path", ""]
    """The text after the subject: the last step, the path, or nothing, if a config has only one such field."""
    risk: Risk = Risk.NONE
    is_dangerous: _Condition = lambda _, after: after is not ABSENT
    consequence: str = ""
    """The meaning of a dangerous value, as a clause."""


def _becomes(*values: Any) -> _Condition:
    """Return a condition that is true for values that become one of these."""
    wanted = {str(value).lower() for value in values}
    return lambda before, after: str(after).lower() in wanted and str(before).lower() not in wanted


def _ends(before: Any, after: Any) -> bool:
    """Return True if a field is removed or disabled."""
    return before not in (ABSENT, False) and after in (ABSENT, False)


def _appears(before: Any, _after: Any) -> bool:
    return before is ABSENT


def _leaves_default(before: Any, after: Any) -> bool:
    return before is not ABSENT or after != "default"


def _changes(_before: Any, _after: Any) -> bool:
    return True


def _grants(pattern: str, consequence: str, condition: _Condition | None = None) -> FieldRule:
    rule = FieldRule(pattern, FIELD, "path", Risk.ACCESS, consequence=consequence)
    return rule._replace(is_dangerous=condition) if condition else rule


def _worsens(
    pattern: str, consequence: str, condition: _Condition = _changes, *, subject: str = FIELD, name: bool = False
) -> FieldRule:
    return FieldRule(pattern, subject, "name" if name else "path", Risk.CAUTION, condition, consequence)


_TRUE: Final = _becomes(True)
_ANOTHER_PROGRAM: Final = "another program runs in the job"
_ROOT: Final = "the program runs as root"
_NETWORK: Final = "the job runs in another network"
_TOKEN: Final = "the program gets a token or a secret of the cluster"  # noqa: S105 - a description
_UNBOUNDED: Final = "nothing else ends a run that hangs"

RULES: Final = (
    FieldRule("**.(order)", ORDER_OF, "path"),
    # Isolation of containers: https://kubernetes.io/docs/concepts/security/pod-security-standards/
    _grants("**.securityContext.privileged", "the container controls its host", _TRUE),
    _grants("**.securityContext.allowPrivilegeEscalation", "the program can gain privileges", _TRUE),
    _grants("**.securityContext.capabilities.add.**", "the container gets more rights on its host"),
    _worsens("**.securityContext.capabilities.drop.**", "the container keeps more rights on its host", _ends),
    _grants("**.securityContext.procMount", "the container sees its host's processes", _becomes("Unmasked")),
    _grants("**.securityContext.**.type", "the container's system calls are not restricted", _becomes("Unconfined")),
    _grants("**.securityContext.windowsOptions.hostProcess", "the container controls its host", _TRUE),
    _grants("**.securityContext.runAsUser", _ROOT, _becomes(0)),
    _grants("**.securityContext.runAsGroup", _ROOT, _becomes(0)),
    _worsens("**.securityContext.runAsNonRoot", "the program may run as root", _ends),
    _worsens("**.securityContext.readOnlyRootFilesystem", "the program can change its container", _ends),
    _grants("**.hostNetwork", "the container uses its host's network, and with it the host's account", _TRUE),
    _grants("**.hostPID", "the container sees and controls its host's processes", _TRUE),
    _grants("**.hostIPC", "the container sees its host's memory", _TRUE),
    _grants("**.hostUsers", "root in the container is root on its host", _TRUE),
    _grants("**.ports.*.hostPort", "the container opens a port of its host"),
    _grants("**.volumes.*.hostPath.**", "the container reads files of its host"),
    _grants("**.volumes.*.secret.**", _TOKEN),
    _grants("**.volumes.*.projected.**", _TOKEN),
    _grants("**.volumes.*.csi.**", _TOKEN),
    _grants("**.automountServiceAccountToken", _TOKEN, _TRUE),
    _grants("**.env.*.valueFrom.**", _TOKEN),
    _grants("**.envFrom.**", _TOKEN),
    _grants("**.imagePullSecrets.**", "images come from a registry with its own credentials"),
    _worsens("**.shareProcessNamespace", "containers of the pod see each other's processes", _TRUE),
    _worsens("**.hostAliases.**", "names of hosts lead to other addresses"),
    _worsens("**.dnsConfig.**", "names of hosts are resolved elsewhere"),
    _worsens("**.dnsPolicy", "names of hosts are resolved elsewhere"),
    # Programs besides the trainer, and other ways to start it
    _worsens("**.containers.*.name", _ANOTHER_PROGRAM, _appears),
    _worsens("spec.replicatedJobs.*.name", _ANOTHER_PROGRAM, _appears),
    _worsens("**.initContainers.**", _ANOTHER_PROGRAM),
    _worsens("**.ephemeralContainers.**", _ANOTHER_PROGRAM),
    _worsens("**.lifecycle.**", _ANOTHER_PROGRAM),
    _worsens("**.*Probe.exec.**", _ANOTHER_PROGRAM),
    _worsens("**.command.**", _ANOTHER_PROGRAM),
    _worsens("**.containerCommand.**", _ANOTHER_PROGRAM),
    # Accounts
    FieldRule("**.serviceAccountName", ACCOUNT, ""),
    FieldRule("**.serviceAccount", ACCOUNT, ""),
    FieldRule("**.serviceAccount.email", ACCOUNT, ""),
    FieldRule("**.serviceAccounts.*.email", ACCOUNT, ""),
    _grants("**.serviceAccount.scope.**", "the account's tokens open more services"),
    _grants("**.serviceAccounts.*.scopes.**", "the account's tokens open more services"),
    _worsens("metadata.namespace", "other accounts, quotas and policies apply", _leaves_default),
    # Networks and machines of Google
    _grants("**.enableWebAccess", "people can open a shell in the running job", _TRUE),
    _grants("**.enableDashboardAccess", "people can open the dashboard of the running job", _TRUE),
    _grants("**.enableExternalIps", "hosts get addresses on the internet", _TRUE),
    _grants("**.accessConfigs.**", "hosts get addresses on the internet", _appears),
    _grants("**.canIpForward", "hosts may send packets under other addresses", _TRUE),
    # Compute Engine has the metadata of an instance as items.
    *(
        rule
        for metadata in ("**.metadata", "**.metadata.items")
        for rule in (
            _grants(f"{metadata}.*ssh*", "people can log in to the hosts"),
            _grants(f"{metadata}.enable-oslogin", "keys in the metadata can log in to the hosts", _becomes("false")),
            _grants(f"{metadata}.serial-port-enable", "people can log in over the serial port", _becomes("true", "1")),
            _worsens(f"{metadata}.*-script*.**", "it runs as root on every host", subject=SCRIPT)._replace(label=""),
            _worsens(f"{metadata}.*", "programs on the hosts read it"),
        )
    ),
    _worsens("tpu.nodeSpec.*.parent", "the slice is created in another project or zone"),
    _worsens("**.tags.**", "other firewall rules apply to the hosts"),
    _worsens("**.shieldedInstanceConfig.**", "hosts start without a check of their software", _ends),
    _worsens("**.dataDisks.**", "the program gets another disk"),
    _worsens("**.disks.*.source", "the program gets another disk"),
    _worsens("**.network", _NETWORK),
    _worsens("**.subnetwork", _NETWORK),
    _worsens("**.networkConfigs.**", _NETWORK),
    _worsens("**.pscInterfaceConfig.**", _NETWORK),
    _worsens("**.persistentResourceId", "the job runs on machines that it shares with others"),
    _worsens("**.kmsKeyName", "data is encrypted with another key, or with Google's"),
    _worsens("**.customerEncryptionKey.**", "data is encrypted with another key, or with Google's"),
    # Length of a run
    _worsens("scheduling.timeout", _UNBOUNDED, _ends),
    _worsens("**.maxRunningTime", _UNBOUNDED, _ends),
    _worsens("**.activeDeadlineSeconds", _UNBOUNDED, _ends),
    _worsens("**.maxRunDuration.**", _UNBOUNDED, _ends),
    # Everything else that has a name of its own
    FieldRule("**.imageUri", IMAGE, ""),
    FieldRule("**.executorImageUri", IMAGE, ""),
    FieldRule("**.image", IMAGE, ""),
    FieldRule("**.runtimeVersion", "runtime version", ""),
    FieldRule("baseOutputDirectory.outputUriPrefix", FOLDER, ""),
    FieldRule("trainingInput.jobDir", FOLDER, ""),
    FieldRule("**.labels.*", "label", "name"),
    FieldRule("**.annotations.*", "annotation", "name"),
    *(
        _worsens(pattern.format(name), "the program can load other code", subject=VARIABLE, name=True)
        for name in ("LD_*", "PYTHON*", "PIP_*", "UV_*", "PATH", "BASH_ENV", "ENV", "GCONV_PATH", "*_LIBRARY_PATH*")
        for pattern in ("**.env.{}", "**.[--env.{}]")
    ),
    *(
        _worsens(pattern.format(name), "the program's traffic takes another way", subject=VARIABLE, name=True)
        for name in ("*_PROXY", "*_proxy", "*_CERT_FILE", "*_CA_BUNDLE", "*_ENDPOINT", "*_BASE_URL", "*_EMULATOR_HOST")
        for pattern in ("**.env.{}", "**.[--env.{}]")
    ),
    *(
        _grants(pattern, "the program acts as another account", _changes)._replace(subject=VARIABLE, label="name")
        for pattern in ("**.env.GOOGLE_APPLICATION_CREDENTIALS", "**.[--env.GOOGLE_APPLICATION_CREDENTIALS]")
    ),
    FieldRule("**.env.*", VARIABLE, "name"),
    FieldRule("**.[--env.*]", VARIABLE, "name"),
    FieldRule("**.--*.**", ARGUMENT, "name"),
    FieldRule("**.args.**", ARGUMENT, ""),
    FieldRule("**.containerArgs.**", ARGUMENT, ""),
)
"""The first row whose pattern matches decides."""
OTHER: Final = FieldRule("**", FIELD, "path")


@lru_cache(maxsize=8192)
def field_rule(path: KeyPath) -> FieldRule:
    """Return the kind of the field at a path."""
    steps = [str(step) for step in path]
    text = "".join(f"\0{step}" for step in steps)
    # Only rules with a step of the path are tried, because a config can have fifty thousand fields.
    candidates = sorted({index for step in ("", *steps) for index in _rules_by_step().get(step, ())})
    return next((RULES[index] for index in candidates if _regex(RULES[index].pattern).fullmatch(text)), OTHER)


@cache
def _rules_by_step() -> dict[str, list[int]]:
    """Return the positions of the rules by a step that each requires; by an empty text, if it requires none."""
    positions: dict[str, list[int]] = {}
    for index, rule in enumerate(RULES):
        step = next((step for step in pattern_steps(rule.pattern) if "*" not in step), "")
        positions.setdefault(step, []).append(index)
    return positions


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    steps = ("(?:\0[^\0]*)*" if step == "**" else f"\0{_step_regex(step)}" for step in pattern_steps(pattern))
    return re.compile("".join(steps), re.DOTALL)


def _step_regex(step: str) -> str:
    return "[^\0]*".join(map(re.escape, step.split("*")))
