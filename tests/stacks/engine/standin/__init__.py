"""Stand-ins for Google's side of a stack, and the real Pulumi engine to run a program against them.

One `Cloud` contains all resources. It has two interfaces: `provider` implements Pulumi's plugin protocol in place of
the gcp plugin, and `google_api` implements Google's REST APIs for the real plugin. `engine` runs programs, and
`projects` prepares their environment.
"""
