"""Four workers at once, whose results arrive in any order."""

from concurrent.futures import ThreadPoolExecutor, as_completed

from stoic import Box, Learner


def run(choice):
    return choice, -((choice.x[0] - 0.3) ** 2) - (choice.x[1] + 1.0) ** 2


def main():
    learner = Learner(Box([0.0, -3.0], [1.0, 3.0]), seed=0)
    with ThreadPoolExecutor(4) as workers:
        for _ in range(8):
            pending = [workers.submit(run, choice) for choice in learner.ask_batch(4)]
            for done in as_completed(pending):
                choice, value = done.result()
                learner.tell(choice.x, value, choice=choice)
    print("recommended:", learner.recommend().x)
    return learner.recommend().x


if __name__ == "__main__":
    main()
