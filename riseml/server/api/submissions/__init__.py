"""A request to run something: parse it, plan it, check it against the pool, make the records to store.

Not here: the plan itself (`riseml.planning`), and the placement of what is stored (`riseml.control`).
"""
