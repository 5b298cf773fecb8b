"""The component."""
