"""Stand-ins for Google's side of a stack, and the real Pulumi engine to run a program against them.

One `Cloud` holds what exists. Two interfaces lead to it: `provider` speaks Pulumi's plugin protocol in place of the gcp
plugin, `google_api` speaks Google's REST APIs to the real plugin. `engine` runs programs, `projects` prepares their
environment.
"""
