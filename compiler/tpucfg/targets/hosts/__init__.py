"""Hosts that start the trainer's container when they boot: shared by the targets whose configs have a start-up script.

`startup` makes the script from the templates in templates/hosts/, `rules` has the findings about a spec and a config.
"""
