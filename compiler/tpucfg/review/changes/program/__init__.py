"""Changes to the stack program and to the files and settings that Pulumi reads, which no resource shows."""
