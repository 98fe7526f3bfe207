"""Commands that analyse a study."""

from __future__ import annotations

from pathlib import Path

from stoic.cli.options import command, option
from stoic.cli.printing import check_format, note, print_records, write_picture
from stoic.cli.studies import Place, check_single, given, look_with
from stoic.printable import to_json
from stoic.refusal import RefusalError


@command(plot=option("With several objectives, draw the front, too.", metavar="FILE.png"))
def show(
    *,
    place: Place,
    recipe: str | None,
    possible: tuple[float, float] | None,
    fix: list[str] | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Print what a study has come to: observed best, recommended, distrusted, failed.

    With --fix, observed best and recommended for these values. With several
    objectives it is the front: the settings that no other one is expected to beat
    in all of them, with 95 % intervals.
    """
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.front import draw
    from stoic.tuning.views.pictures import check_picture
    from stoic.tuning.views.summary import Summary

    check_picture(plot)
    study = place.load(only_read=True)
    if plot is not None and len(study.directions) == 1:
        raise RefusalError("--plot draws a front, and the study has one objective: stoic report.")
    with in_one_sentence("Could not read the study"):
        summary = Summary.of(study, look_with(study, recipe), given(study, fix), possible)
    if (known := summary.explanation) is not None:
        write_picture(plot, lambda: draw(known))
    print(to_json(summary.record(), indent=2) if json else summary.text())


@command(plot=option("Draw them over time, too.", metavar="FILE.png"))
def trust(
    *,
    place: Place,
    recipe: str | None,
    possible: tuple[float, float] | None,
    plot: Path | None,
    form: str = "table",
    json: bool,
) -> None:
    """Print which results are distrusted, how much and why.

    One line for each complete trial, distrusted ones first: the observed value, what
    all other trials make one expect there (with its standard deviation), how far
    off that is in standard deviations of such a result, the plateau within which
    a result is trusted entirely, and the trust from 0 to 1.
    """
    check_format(form)
    from stoic.integrations.optuna.explanation import excluded_lines, unfinished_lines
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.pictures import check_picture
    from stoic.tuning.views.timeline import draw
    from stoic.tuning.views.trust import Trust

    check_picture(plot)
    study = place.load(only_read=True)
    if plot is not None:
        check_single(study, "--plot", "stoic show --plot draws its front")
    with in_one_sentence("Could not read the study"):
        judged = Trust.of(study, look_with(study, recipe), possible)
    # Before the table, which may go to a pipe that is closed early
    write_picture(plot, lambda: draw(judged))
    if json:
        print(to_json(judged.record(), indent=2))
        return
    known = judged.explanation
    for line in [*unfinished_lines(known.partial), *excluded_lines(known)]:
        note(line)
    print_records(judged.lines() if form == "table" else judged.records(), form)


@command()
def certify(
    *,
    place: Place,
    threshold: str | None,
    margin: float | None,
    tolerance: list[str] | None,
    policy: str | None,
    radius: float | None,
    p: float | None,
    recipe: str | None,
    plot: Path | None,
    json: bool,
) -> None:
    """Print how far the recommended setting may be moved, beside the observed best.

    Of any study: tolerances and threshold go before those that it was begun with.
    The guaranteed value is the worst one within a distance by the bound of the
    model's band that is worse, the expected one by its mean.
    """
    from stoic.integrations.optuna.objective import merge_over
    from stoic.tuning.request import aim_arguments
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.certificate import Certificates
    from stoic.tuning.views.moves import draw
    from stoic.tuning.views.pictures import check_picture

    said = aim_arguments(
        {
            "threshold": threshold, "margin": margin, "tolerance": tolerance, "policy": policy,
            "radius": radius, "p": p,
        }
    )  # fmt: skip
    check_picture(plot)
    if place.request is not None:
        said = merge_over(said, place.request.said)
    study = place.load(only_read=True)
    check_single(study, "certify", "stoic show prints its front")
    with in_one_sentence("Could not read the study"):
        found = Certificates.of(study, said, look_with(study, recipe))
    write_picture(plot, lambda: draw(found))
    print(to_json(found.record(), indent=2) if json else found.text())


@command(out=option("Where to write the page.", metavar="FILE.html"))
def report(
    *,
    out: Path = Path("report.html"),
    place: Place,
    recipe: str | None,
    possible: tuple[float, float] | None,
) -> None:
    """Write a page for a browser: history, trust, model, distrusted, failed.

    Everything is in the one file of 5 to 10 MB, so it opens offline.
    """
    study = place.load(only_read=True)
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.report import Report

    with in_one_sentence("Could not read the study"):
        judged = Report.of(study, look_with(study, recipe), possible)
    judged.write(out)
    print(f"Wrote {out}.")
