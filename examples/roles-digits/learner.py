"""The learner: holds the policy, improves it with the gradients of the actors, and tests it with other digits."""

import argparse
import json
import os
import threading
from pathlib import Path

from lines import LABELS, TRAINING_IMAGES, load_digits, score, serve

INPUTS = 50
REPORT = 10_000  # plays between two lines of output
ACTORS = len(os.environ.get("ACTOR_ADDRESSES", "one").split(","))
FRESH = 400  # plays; a gradient counts half as much after so many plays of others since its actor got the policy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/digits", help="folder with mnist_5k.csv.gz")
    parser.add_argument("--plays", type=int, default=40_000, help="plays of all actors together")
    args = parser.parse_args()
    exam = load_digits(args.data)[TRAINING_IMAGES:]
    policy = [[0.0] * INPUTS for _ in LABELS]
    counts = {"plays": 0, "won": 0, "actors": 0}
    lock, all_here, enough = threading.Lock(), threading.Event(), threading.Event()

    def answer(message):
        if "gradient" not in message:  # the first message of an actor; it waits for actors that start later
            with lock:
                counts["actors"] += 1
                if counts["actors"] >= ACTORS:
                    all_here.set()
            all_here.wait()
        with lock:
            if "gradient" in message and not enough.is_set():
                age = counts["plays"] - message["since"]
                rate = 1.5 / (1 + 2 * counts["plays"] / args.plays) / (1 + age / FRESH)
                improve(policy, message["gradient"], rate)
                counts["plays"] += message["plays"]
                counts["won"] += message["won"]
                report(counts)
                if counts["plays"] >= args.plays:
                    enough.set()
            return {"goes_on": not enough.is_set(), "policy": policy, "since": counts["plays"]}

    serve(answer)
    enough.wait()
    right = sum(choose(policy, image) == label for image, label in exam)
    (Path(os.environ.get("OUTPUT_DIR", ".")) / "policy.json").write_text(json.dumps(policy))
    print(f"test accuracy: {right / len(exam):.4f}")


def improve(policy, gradient, rate):
    for weights, slopes in zip(policy, gradient, strict=True):
        weights[:] = [weight + rate * slope for weight, slope in zip(weights, slopes, strict=True)]


def report(counts):
    if counts["plays"] % REPORT == 0:
        print(f"{counts['plays']} plays, {counts['won'] / REPORT:.2f} of the last ones won")
        counts["won"] = 0


def choose(policy, image):
    scores = score(policy, image)
    return scores.index(max(scores))


if __name__ == "__main__":
    main()
