"""riseml.yml: text to a `Spec`, or to all its problems at once. No I/O beyond reading the file that is named."""
