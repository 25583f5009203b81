"""Jobs as containers of one Docker Engine.

Only this package and `executors.transports` import the Docker SDK.
Here: containers, images, networks, events, logs, statistics and labels of one engine.
Not here: how an engine is reached (`executors.transports`), decisions (`control`), and processes (`executors.process`).
"""
