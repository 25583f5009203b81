"""The control loop: load, observe, decide, save, act; and the events that wake it.

Here: the loop, the actor that carries out actions, the tracker of pending actions, the log followers, the loop of
searches, the counter of metrics and the writer of capsules. Not here: decisions (`control`), HTTP (`server.api`), and
where hosts come from (`server.hosts`).
"""
