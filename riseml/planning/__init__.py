"""From a spec to a plan, and from a plan with addresses to what each executor starts. Pure; no I/O, no clock."""
