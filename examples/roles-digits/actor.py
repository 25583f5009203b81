"""An actor: gets the policy from the learner, guesses digits of the arena, and sends the gradient of its rewards.

It never sees a label. A rewarded guess makes the policy prefer this guess, and more so the less likely the guess was.
"""

import argparse
import os
import random

from lines import LABELS, connect, score, softmax

BATCH = 40
EXPLORE = 0.2  # share of the guesses that are random, without the policy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arena", required=True, help="host:port")
    parser.add_argument("--learner", required=True, help="host:port")
    args = parser.parse_args()
    random.seed(int(os.environ.get("ROLE_INDEX", "0")))
    arena, learner = connect(args.arena), connect(args.learner)
    played, answer = 0, learner({})
    while answer and answer["goes_on"]:
        gradient, won = play(arena, answer["policy"])
        played += BATCH
        answer = learner({"gradient": gradient, "won": won, "plays": BATCH, "since": answer["since"]})
    print("played", played, "digits")


def play(arena, policy):
    """Play one batch, and return the gradient of the rewards and how many guesses were right."""
    shown = arena({"show": BATCH})
    chances = [softmax(score(policy, image)) for image in shown["images"]]
    odds = [[(1 - EXPLORE) * one + EXPLORE / len(LABELS) for one in row] for row in chances]
    guesses = [random.choices(LABELS, row)[0] for row in odds]
    rewards = arena({"numbers": shown["numbers"], "guesses": guesses})["rewards"]
    gradient = [[0.0] * len(weights) for weights in policy]
    for image, chance, odd, guess, reward in zip(shown["images"], chances, odds, guesses, rewards, strict=True):
        for label in LABELS if reward else ():
            pull = ((label == guess) - chance[label]) / odd[guess] / BATCH
            gradient[label] = [total + pull * value for total, value in zip(gradient[label], image, strict=True)]
    return gradient, sum(rewards)


if __name__ == "__main__":
    main()
