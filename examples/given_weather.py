"""Some inputs are given in each round: the best time to water depends on the weather."""

from stoic import Box, Learner


def harvest(x):
    litres, degrees = x
    return -((litres - degrees / 40.0) ** 2)


def main():
    learner = Learner(Box([0.0, 0.0], [1.0, 40.0]), seed=0)
    for day in range(24):
        degrees = 5.0 + 11.0 * day % 30.0
        choice = learner.ask(context={1: degrees})
        learner.tell(choice.x, harvest(choice.x))
    tomorrow = learner.recommend(context={1: 24.0})
    print("litres at 24 degrees:", tomorrow.x[0])
    return tomorrow.x[0]


if __name__ == "__main__":
    main()
