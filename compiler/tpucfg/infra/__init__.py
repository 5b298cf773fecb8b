"""The infrastructure as the compiler sees it: stack files, resources and their rules, outputs. Pulumi on demand."""
