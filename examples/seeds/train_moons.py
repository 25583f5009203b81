"""A network with one hidden layer learns to tell two half moons apart. Python alone, some seconds.

The data is always the same. The seed decides the first weights and the order of the examples: what is left to chance.
"""

from __future__ import annotations

import argparse
import math
import random

import riseml

EPOCHS = 30
HIDDEN = 8
NOISE = 0.25

Example = tuple[float, float, float]


def make_moons(count: int, source: random.Random) -> list[Example]:
    """Return points of two half moons that reach into each other, with 0 or 1 for their moon."""
    points = []
    for at in range(count):
        angle = math.pi * source.random()
        moon = at % 2
        x, y = (math.cos(angle), math.sin(angle)) if moon else (1 - math.cos(angle), 0.5 - math.sin(angle))
        points.append((x + source.gauss(0, NOISE), y + source.gauss(0, NOISE), float(moon)))
    return points


class Network:
    """Two inputs, `HIDDEN` units with tanh, and one output with a sigmoid."""

    def __init__(self, source: random.Random) -> None:
        self.inner = [[source.gauss(0, 0.5) for _ in range(3)] for _ in range(HIDDEN)]  # of x, y and 1
        self.outer = [source.gauss(0, 0.5) for _ in range(HIDDEN + 1)]

    def activate(self, x: float, y: float) -> list[float]:
        return [*(math.tanh(wx * x + wy * y + bias) for wx, wy, bias in self.inner), 1.0]

    def predict(self, units: list[float]) -> float:
        total = sum(weight * unit for weight, unit in zip(self.outer, units, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))

    def learn(self, example: Example, lr: float) -> None:
        """Take one step of gradient descent on the cross-entropy of one example."""
        x, y, moon = example
        units = self.activate(x, y)
        error = self.predict(units) - moon
        for at, row in enumerate(self.inner):
            slope = lr * error * self.outer[at] * (1 - units[at] ** 2)
            row[0] -= slope * x
            row[1] -= slope * y
            row[2] -= slope
        self.outer = [weight - lr * error * unit for weight, unit in zip(self.outer, units, strict=True)]

    def measure(self, examples: list[Example]) -> float:
        right = sum((self.predict(self.activate(x, y)) > 0.5) == bool(moon) for x, y, moon in examples)
        return right / len(examples)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    data = random.Random(0)
    examples, held_out = make_moons(300, data), make_moons(500, data)
    source = random.Random(options.seed)
    network = Network(source)
    for epoch in range(1, EPOCHS + 1):
        source.shuffle(examples)
        for example in examples:
            network.learn(example, options.lr)
        accuracy = network.measure(held_out)
        riseml.report(step=epoch, accuracy=accuracy)
        print(f"epoch {epoch}: accuracy {accuracy:.3f}", flush=True)


if __name__ == "__main__":
    main()
