"""Compile a spec to request bodies, validate and render them, and write the config files.

Other rooms import these modules by their names, as a command without configs needs none of them:

- `pipeline` compiles a spec, and renders and verifies its configs, which are values of `config`;
- `validate` checks a config that someone else has written;
- `output_dir` compares configs with the files of a folder, and writes them.
"""
