"""Our own figures: the default against other optimizers, with outliers and without."""

from stoic.experiments.contest import (
    accuracy,
    conditional,
    confirm,
    constraints,
    development,
    final,
    graded,
    long,
    narrow,
    objectives,
    ordinary,
    penalised,
    pruning,
    tables,
    warm,
)

FIGURES = (
    development.QUICK,
    development.FIGURE,
    accuracy.FIGURE,
    ordinary.FIGURE,
    confirm.FIGURE,
    narrow.FIGURE,
    conditional.FIGURE,
    constraints.FIGURE,
    objectives.FIGURE,
    pruning.FIGURE,
    penalised.FIGURE,
    graded.FIGURE,
    warm.FIGURE,
    tables.FIGURE,
    long.FIGURE,
    final.FIGURE,
)
