"""A loop of your own: a person at a bench, a queue of jobs. Results are maximised."""

import math

from stoic import Box, Learner


def measure(x, number):
    if number == 8:
        return 1e6  # a sensor sticks
    if number == 11:
        return math.nan  # a plate breaks
    return -((x[0] - 0.3) ** 2) - (x[1] + 1.0) ** 2


def main():
    learner = Learner(Box([0.0, -3.0], [1.0, 3.0]), seed=0)
    for number in range(25):
        choice = learner.ask()
        learner.tell(choice.x, measure(choice.x, number))
    best = learner.recommend()
    print("recommended:", best.x, "trust of the stuck reading:", learner.trust[8])
    return best.x


if __name__ == "__main__":
    main()
