"""Commands that analyse a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stoic.cli.app import (
    Fix,
    Format,
    Json,
    Margin,
    PolicyName,
    Possible,
    Power,
    Radius,
    RecipeText,
    StorageClass,
    StorageUrl,
    StudyName,
    Threshold,
    Tolerance,
    Which,
    app,
)
from stoic.cli.printing import check_format, note
from stoic.cli.studies import check_single, given, load, look_with
from stoic.printable import to_json
from stoic.refusal import RefusalError


@app.command()
def show(
    what: Which = None,
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    recipe: RecipeText = None,
    possible: Possible = None,
    fix: Fix = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE.png",
            help="With several objectives, draw the front, too.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Print what a study has come to: observed best, recommended, distrusted, failed.

    With --fix, observed best and recommended for these values. With several
    objectives it is the front: the settings that no other one is expected to beat
    in all of them, with 95 % intervals.
    """
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.front import draw
    from stoic.tuning.views.pictures import check_picture, write_picture
    from stoic.tuning.views.summary import Summary

    if plot is not None:
        check_picture(plot)
    study = load(what, study_name, storage, storage_class, only_read=True)
    if plot is not None and len(study.directions) == 1:
        raise RefusalError("--plot draws a front, and the study has one objective: stoic report.")

    with in_one_sentence("Could not read the study"):
        summary = Summary.of(study, look_with(study, recipe), given(study, fix), possible)
    if plot is not None and summary.explanation is not None:
        write_picture(draw(summary.explanation), plot)
        note(f"Wrote {plot}.")
    print(to_json(summary.record(), indent=2) if json else summary.text())


@app.command()
def trust(
    what: Which = None,
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    recipe: RecipeText = None,
    possible: Possible = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE.png", help="Draw them over time, too.", show_default=False
        ),
    ] = None,
    form: Format = "table",
    json: Json = False,
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
    from stoic.tuning.views.pictures import check_picture, write_picture
    from stoic.tuning.views.records import render
    from stoic.tuning.views.timeline import draw
    from stoic.tuning.views.trust import Trust

    if plot is not None:
        check_picture(plot)
    study = load(what, study_name, storage, storage_class, only_read=True)
    if plot is not None:
        check_single(study, "--plot", "stoic show --plot draws its front")
    with in_one_sentence("Could not read the study"):
        judged = Trust.of(study, look_with(study, recipe), possible)
    if plot is not None:  # before the table, which may go to a pipe that is closed early
        write_picture(draw(judged), plot)
        note(f"Wrote {plot}.")
    if json:
        print(to_json(judged.record(), indent=2))
    else:
        known = judged.explanation
        for line in [*unfinished_lines(known.partial), *excluded_lines(known)]:
            note(line)
        print(render(judged.lines() if form == "table" else judged.records(), form))


@app.command()
def certify(
    what: Which = None,
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    threshold: Threshold = None,
    margin: Margin = None,
    tolerance: Tolerance = None,
    policy: PolicyName = None,
    radius: Radius = None,
    p: Power = None,
    recipe: RecipeText = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE.png", help="Draw it, too.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Print how far the recommended setting may be moved, beside the observed best.

    Of any study: tolerances and threshold go before those that it was begun with.
    The guaranteed value is the worst one within a distance by the bound of the
    model's band that is worse, the expected one by its mean.
    """
    from stoic.tuning.request import aim_arguments
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.certificate import Certificates
    from stoic.tuning.views.moves import draw
    from stoic.tuning.views.pictures import check_picture, write_picture

    said = aim_arguments(
        tolerance or [], threshold=threshold, margin=margin, policy=policy, radius=radius, p=p
    )
    if plot is not None:
        check_picture(plot)
    study = load(what, study_name, storage, storage_class, only_read=True)
    check_single(study, "certify", "stoic show prints its front")
    with in_one_sentence("Could not read the study"):
        found = Certificates.of(study, said, look_with(study, recipe))
    if plot is not None:
        write_picture(draw(found), plot)
        note(f"Wrote {plot}.")
    print(to_json(found.record(), indent=2) if json else found.text())


@app.command()
def report(
    what: Which = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.html", help="Where to write the page.")
    ] = Path("report.html"),
    study_name: StudyName = None,
    storage: StorageUrl = None,
    storage_class: StorageClass = None,
    recipe: RecipeText = None,
    possible: Possible = None,
) -> None:
    """Write a page for a browser: history, trust, model, distrusted, failed.

    Everything is in the one file of about 5 MB, so it opens offline.
    """
    study = load(what, study_name, storage, storage_class, only_read=True)
    from stoic.tuning.storage import in_one_sentence
    from stoic.tuning.views.report import Report

    with in_one_sentence("Could not read the study"):
        judged = Report.of(study, look_with(study, recipe), possible)
    judged.write(out)
    print(f"Wrote {out}.")
