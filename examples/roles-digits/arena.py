"""The arena: sends digits to the actors, and rewards right guesses. Only the arena uses the training labels."""

import argparse
import random
import threading

from lines import TRAINING_IMAGES, load_digits, serve


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="data/digits", help="folder with mnist_5k.csv.gz")
    digits = load_digits(parser.parse_args().data)[:TRAINING_IMAGES]

    def answer(message):
        if "show" in message:
            numbers = [random.randrange(len(digits)) for _ in range(message["show"])]
            return {"numbers": numbers, "images": [digits[number][0] for number in numbers]}
        pairs = zip(message["numbers"], message["guesses"], strict=True)
        return {"rewards": [1 if digits[number][1] == guess else 0 for number, guess in pairs]}

    serve(answer)
    threading.Event().wait()  # riseml stops it when no other job needs it


if __name__ == "__main__":
    main()
