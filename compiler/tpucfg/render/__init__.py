"""Compile a spec to request bodies, validate and render them, and write the config files."""
