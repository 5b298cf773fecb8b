"""Fields of a Job of AI Platform Training that `extra` cannot set, although the target does not write them."""

from collections.abc import Mapping
from typing import Final

from tpucfg.targets.ai_platform.rules import FIELDS, GUIDE
from tpucfg.targets.interface import Reserved

_MACHINES: Final = Reserved("sizes", "add machines that the plan does not count", FIELDS, adds_machines=True)
_PROGRAM: Final = Reserved("trainer.image", "replace the program of the image", FIELDS)
_SERVERS: Final = _MACHINES._replace(source=GUIDE)

RESERVED: Final[Mapping[str, Reserved]] = {
    "jobId": Reserved("name", "give the job another name than the command that submits it", FIELDS),
    "trainingInput.masterType": Reserved(
        "targets.ai-platform.machine", "choose a master beside the basic tier, which chooses its own", GUIDE
    ),
    "trainingInput.jobDir": Reserved("trainer.args", "pass the program a further flag, --job-dir", FIELDS),
    "trainingInput.serviceAccount": Reserved(
        "", "run the job as another account than the service's own, to which the stack grants access", FIELDS
    ),
    "trainingInput.hyperparameters.**": Reserved(
        "", "start several runs of the program, with flags of their own", FIELDS
    ),
    **{f"trainingInput.parameterServer{field}": _SERVERS for field in ("Count", "Type", "Config")},
    **{f"trainingInput.evaluator{field}": _MACHINES for field in ("Count", "Type", "Config")},
    "trainingInput.masterConfig.acceleratorConfig.**": _MACHINES,
    "trainingInput.workerConfig.acceleratorConfig.**": Reserved(
        "sizes", "name a TPU where the machine already has one", GUIDE
    ),
    "trainingInput.masterConfig.tpuTfVersion": Reserved("trainer.runtime", "give the master a runtime", FIELDS),
    **{
        f"trainingInput.{replica}Config.container{field}": _PROGRAM
        for replica in ("master", "worker")
        for field in ("Args", "Command")
    },
}
"""See `Target.RESERVED`."""
