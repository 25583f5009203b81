"""`riseml mcp`: the tools that a coding agent calls, and what it may do with them in one session.

Here: the session with its budget and its plans, the tools, how their answers are kept short, the pages that an agent
reads. `mcp_server` alone imports the SDK of the Model Context Protocol.
Not here: submission (`riseml.submission`), requests (`riseml.client`); an agent does nothing that a program cannot.
"""
