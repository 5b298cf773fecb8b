"""The infrastructure of one environment of the spec; the stack has the environment's name."""

from tpucfg.stack import deploy

environment = deploy()

# Declare resources of your own below; docs/environments.md of tpucfg has an example.
