"""Rules about single resources, by subject; `infra/resource_rules.py` has the table of all rules."""
