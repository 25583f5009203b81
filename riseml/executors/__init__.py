"""What runs jobs. An executor stands for one host; it does what the control loop decided, and decides nothing.

Here: the seam (`base`, `capabilities`), all hosts together (`pool`), the executor of the tests (`memory`), and what
several executors read of this machine (`machine`, `gpus`, `timestamps`). One package for each kind of executor:
`docker` and `process`. `transports` has the connections to engines.
Not here: decisions (`control`), records (`store`), HTTP and the loop (`server`).
"""
