"""Changes between two revisions: their facts, one comparison, one table of what a changed fact means, and grouping.

Other rooms import these modules by their names, as `tpucfg diff` needs few of them, and no others:

- `revisions` opens and compiles both revisions, and `records` reads what they have measured;
- `config_diff` and `revision_facts` compare configs;
- `impact`, `costs`, `fits` and `repository_changes` return what a change does, `figures` its tables;
- `programs`, `previews` (with drift) and `resource_diff` return what changes in the infrastructure;
- `facts`, `statements` and `resources` have the values in between.
"""
