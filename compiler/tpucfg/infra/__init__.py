"""Infrastructure of a spec: stack files, declared resources and their rules, stack outputs. Pulumi is optional."""
