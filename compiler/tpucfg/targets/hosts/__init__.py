"""Hosts that start the trainer's container when they boot: shared by the targets whose configs have a start-up script.

`startup` makes the script from the templates in templates/hosts/. `findings`, `secret_variables` and `zones` have the
findings about a spec, `metadata` and `disks` the rules about a config, `reserved` what `extra` cannot set, `notes` what
`tpucfg submit` prints.
"""
