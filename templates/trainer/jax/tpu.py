"""TPU of the job: the hosts of a slice run this program together and have to connect first."""

import jax

JOIN_SECONDS = 1800
"""The wait for the other hosts: one may pull the image, or install Docker, minutes later. JAX waits 300 seconds."""
HELP = "help: to try it on one machine, give --hosts=1"


def join(hosts: int) -> None:
    """Connect all hosts of the slice.

    On a TPU, JAX reads the addresses of the hosts from the machine's metadata:
    https://docs.jax.dev/en/latest/multi_process.html

    Raises:
        SystemExit: The slice does not have the config's number of hosts.
    """
    needed = f"--hosts={hosts} needs a slice of {hosts} hosts"
    if hosts > 1:
        try:
            jax.distributed.initialize(initialization_timeout=JOIN_SECONDS)
        except (RuntimeError, ValueError) as error:
            raise SystemExit(
                f"{needed}, and they do not find each other: {error}\n{HELP}"
            ) from None
    if jax.process_count() != hosts:
        raise SystemExit(f"{needed}, and this program runs on {jax.process_count()}\n{HELP}")
    if jax.process_index() == 0:
        print(
            f"devices: {jax.device_count()} ({jax.devices()[0].device_kind}), hosts: {hosts}",
            flush=True,
        )
