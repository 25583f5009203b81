"""The control loop: load, observe, decide, save, act; and what wakes it.

Here: the loop, the actor that carries out actions, the tracker of pending actions, and the log followers.
Not here: decisions (`control`), HTTP (`server.api`), and where hosts come from (`server.pool`).
"""
