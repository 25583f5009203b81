"""The executors, which run jobs. Each one stands for one host, does what the control loop has decided, and decides
nothing.

Here: the interface (`base`, `capabilities`), all hosts together (`pool`), and one package for each kind of executor:
`kinds` names them and makes them. What several of them share has rooms by subject: `logs`, `gpus`, `this_machine`;
`environments` makes virtual environments for kinds without containers; `supervision` keeps processes of this machine
that outlive the server, and has the programs that run on nodes, too; `transports` has the connections to engines.
Not here: decisions (`control`), records (`store`), HTTP and the loop (`server`).
"""
