"""Jobs as containers of one Docker Engine.

Only this package and `executors.transports` import the Docker SDK.
Here: containers, images (`images` pulls and builds, `image_names` names, `image_transfer` copies), networks, events,
logs, statistics and labels of one engine, and who controls the output folders of its host (`output_parts`).
Not here: how an engine is reached (`executors.transports`), decisions (`control`), and processes (`executors.process`).
"""
