"""Rendering: compiling a spec to request bodies, validating and rendering them, and writing the config files."""
