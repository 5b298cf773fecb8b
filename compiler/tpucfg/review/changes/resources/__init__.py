"""Changes to the resources of an environment, and what they mean: data, protection, access, drift."""
