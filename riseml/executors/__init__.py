"""The executors, which run jobs. Each one stands for one host, does what the control loop has decided, and decides
nothing.

Here: the interface (`base`, `capabilities`), all hosts together (`pool`), the executors of the tests (`memory`,
`memory_cluster`), and what several executors share (`machine`, `gpus`, `timestamps`, logs, streams, commands in jobs).
One package for each kind of executor: `docker`, `process` and `slurm`. `environments` makes virtual environments for
the last two; `supervision` keeps processes of this machine that outlive the server; `transports` has the connections to
engines.
Not here: decisions (`control`), records (`store`), HTTP and the loop (`server`).
"""
