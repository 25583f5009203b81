"""Make data, train on it at three learning rates, and evaluate the best model: each step is a run of its own."""

import steps

import riseml

data = riseml.submit(steps.prepare, 500)
points = [{"rate": rate} for rate in (0.001, 0.1, 0.5)]
models = riseml.map(steps.train, points, concurrency=3, inputs={"data": data})
errors = models.wait().returned()
best = models.experiments[errors.index(min(errors))]
report = riseml.submit(steps.evaluate, inputs={"data": data, "model": best}).wait()
print(f"rate {points[errors.index(min(errors))]['rate']}: error {report.returned():.4f}")
