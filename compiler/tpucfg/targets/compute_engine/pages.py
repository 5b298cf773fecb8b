"""The public pages that state the rules of this target."""

from typing import Final

_COMPUTE: Final = "https://cloud.google.com/compute/docs"

POLICIES: Final = f"{_COMPUTE}/reference/rest/v1/resourcePolicies"
TEMPLATES: Final = f"{_COMPUTE}/reference/rest/v1/instanceTemplates"
GROUPS: Final = f"{_COMPUTE}/reference/rest/v1/instanceGroupManagers"
INSTANCES: Final = f"{_COMPUTE}/reference/rest/v1/instances"
TPUS: Final = f"{_COMPUTE}/tpus/tpu-machines"
GROUPS_OF_TPUS: Final = "https://docs.cloud.google.com/tpu/docs/tpus-and-migs"
BULK: Final = f"{_COMPUTE}/instance-groups/about-bulk-mode"
SPOT: Final = "https://docs.cloud.google.com/tpu/docs/spot-compute"
FLEX_START: Final = f"{_COMPUTE}/instances/about-flex-start-vms"
FLEX_START_WAIT: Final = f"{_COMPUTE}/instances/create-flex-start-vm"
RESERVATIONS: Final = f"{_COMPUTE}/instances/reservations-consume"
TIME_LIMIT: Final = f"{_COMPUTE}/instances/limit-vm-runtime"
DISKS: Final = "https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage"
IMAGES: Final = "https://docs.cloud.google.com/tpu/docs/quickstart-create-multi-host-slice"
ADDRESSES: Final = "https://cloud.google.com/vpc/docs/private-google-access"
NAT: Final = "https://cloud.google.com/nat/docs/overview"
STARTUP: Final = f"{_COMPUTE}/instances/startup-scripts/linux"
ACCOUNTS: Final = f"{_COMPUTE}/access/service-accounts"
