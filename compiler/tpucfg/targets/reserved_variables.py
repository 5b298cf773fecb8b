"""Variables of the program that `extra` cannot set, on every target with a list of variables."""

from collections.abc import Mapping
from typing import Final

from tpucfg.plan.job import XLA_FLAGS_VARIABLE
from tpucfg.targets.interface import Reserved

_CREDENTIALS: Final = "https://cloud.google.com/docs/authentication/application-default-credentials"
_JAX: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"
_PLACE: Final = Reserved("sizes", "give a host another place in the slice than the service does", _JAX)


def reserved_variables(list_path: str, target: str) -> Mapping[str, Reserved]:
    """Return the rows of RESERVED for a list of variables, given its path and the target's name."""
    account = f"targets.{target}.service_account"
    variables = {
        XLA_FLAGS_VARIABLE: Reserved("trainer.xla_flags", "replace the flags of the TPU compiler"),
        "GOOGLE_APPLICATION_CREDENTIALS": Reserved(account, "let the program act as another account", _CREDENTIALS),
        **dict.fromkeys(("MEGASCALE_*", "TPU_PROCESS_*", "TPU_WORKER_*"), _PLACE),
    }
    return {f"{list_path}.{variable}": reserved for variable, reserved in variables.items()}
