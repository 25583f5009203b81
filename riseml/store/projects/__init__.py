"""The projects of experiments: uploads, states by digest, and the contents of all files, each stored once."""
