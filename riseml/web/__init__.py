"""The web page: static files that `riseml.server.web` serves, and nothing else.

Here: HTML, CSS and JavaScript modules, as the browser gets them; no build step makes them.
Not here: Python. The page asks the HTTP API for everything that it shows.
"""
