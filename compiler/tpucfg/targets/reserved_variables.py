"""Variables of the program that `extra` cannot set, on every target with a list of variables."""

from collections.abc import Mapping
from typing import Any, Final

from tpucfg.plan.job import XLA_FLAGS_VARIABLE
from tpucfg.plan.runtime_variables import RUNTIME_VARIABLES
from tpucfg.targets.interface import RequestBody, Reserved

_CREDENTIALS: Final = "https://cloud.google.com/docs/authentication/application-default-credentials"
_JAX_PLATFORMS: Final = "https://docs.jax.dev/en/latest/config_options.html"
_OTHER_PLATFORMS: Final = frozenset(("cpu", "cuda", "gpu", "rocm"))


def _is_off_tpus(variable: Any, _: RequestBody) -> bool:
    """Return True for a list of platforms that JAX finds no TPU with; without names, it tries all of them."""
    value = variable.get("value") if isinstance(variable, dict) else None
    names = {name.strip().lower() for name in value.split(",")} - {""} if isinstance(value, str) else set()
    return bool(names) and names <= _OTHER_PLATFORMS


def reserved_variables(list_path: str, target: str) -> Mapping[str, Reserved]:
    """Return the rows of RESERVED for a list of variables, given its path and the target's name."""
    account = f"targets.{target}.service_account"
    variables = {
        XLA_FLAGS_VARIABLE: Reserved("trainer.xla_flags", "replace the flags of the TPU compiler"),
        "GOOGLE_APPLICATION_CREDENTIALS": Reserved(account, "let the program act as another account", _CREDENTIALS),
        "JAX_PLATFORMS": Reserved("", "keep the program off the TPUs", _JAX_PLATFORMS, _is_off_tpus),
        **{name: Reserved("sizes", row.effect, row.source) for name, row in RUNTIME_VARIABLES.items()},
    }
    return {f"{list_path}.{variable}": reserved for variable, reserved in variables.items()}
