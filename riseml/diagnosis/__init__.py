"""What the processes of a run do now, and why: the stacks of their threads, equal stacks together, in sentences.

Pure: values in, values out. It knows no executor, no store, no HTTP and no terminal, so that server and command line
can use it. Not here: how stacks are read from processes (`executors`), and how they are printed (`cli.output`).
"""
