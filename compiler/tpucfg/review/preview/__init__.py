"""Read `pulumi preview --json`: events of the engine, resource steps, failures."""
