"""riseml.yml: text to a `Spec`, or to all its problems.

Here: the dataclasses, the loader, the rules that a schema cannot express, command-line overrides, templates, files of
earlier RiseML generations, the reference page.
Not here: YAML (`spec.yaml`), what the schema says (`spec.schema`), pool.yml (`spec.pool`), and everything that depends
on hosts or other experiments (`planning`, `control`).
"""
