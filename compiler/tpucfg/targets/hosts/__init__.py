"""Hosts that start the trainer's container when they boot: shared by the targets whose configs have a start-up script.

`startup` makes the script from the templates in templates/hosts/. `findings` and `secret_variables` have the findings
about a spec, `metadata` and `disks` the rules about those parts of a config, `notes` what `tpucfg submit` prints.
"""
