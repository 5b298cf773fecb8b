"""Runs of stack programs in processes that can neither write, connect nor outlive the run, where the system allows."""
