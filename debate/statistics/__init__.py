"""Figures of judges against people, of panels and of rankings, on plain arrays. Knows nothing of runs and stores.

NaN is a score that nobody gave: it is left out and counted, never read as a zero. What is undefined is NaN with a
reason.
"""

from debate.statistics.agreement import Agreement, cohen_kappa, fleiss_kappa, gwet_ac, krippendorff_alpha
from debate.statistics.calibration import (
    Bin,
    Isotonic,
    Reliability,
    Temperature,
    brier_score,
    expected_calibration_error,
    fit_isotonic,
    fit_temperature,
)
from debate.statistics.correlation import (
    Calibrated,
    HeldOut,
    bias,
    correlation,
    held_out_accuracy,
    pair_accuracy,
    pairwise_accuracy,
    tie_calibration,
)
from debate.statistics.few_labels import (
    AnnotatorTest,
    Corrected,
    alternative_annotator_test,
    ppi_mean,
    ppi_mean_by_strata,
    rogan_gladen,
)
from debate.statistics.intervals import (
    Accuracy,
    Discordant,
    Estimate,
    Mean,
    bootstrap,
    clustered_mean,
    false_discovery,
    mcnemar,
    paired_difference,
    share,
    smallest_difference,
    wilson,
)
from debate.statistics.panels import (
    EffectiveJudges,
    Flips,
    OracleGap,
    Position,
    conformity,
    effective_judges,
    flips,
    independence_gap,
    length_slope,
    oracle_gap,
    position,
)
from debate.statistics.rankings import ELO, Ranking, Skill, bradley_terry, soft_pairwise_accuracy
from debate.statistics.selective import SelectiveThreshold, least_tasks, selective_threshold
from debate.statistics.weights import fit_weights

__all__ = [
    "ELO", "Accuracy", "Agreement", "AnnotatorTest", "Bin", "Calibrated", "Corrected", "Discordant",
    "EffectiveJudges", "Estimate", "Flips", "HeldOut", "Isotonic", "Mean", "OracleGap", "Position", "Ranking",
    "Reliability", "SelectiveThreshold", "Skill", "Temperature", "alternative_annotator_test", "bias", "bootstrap",
    "bradley_terry", "brier_score", "clustered_mean", "cohen_kappa", "conformity", "correlation", "effective_judges",
    "expected_calibration_error", "false_discovery", "fit_isotonic", "fit_temperature", "fit_weights", "fleiss_kappa",
    "flips", "gwet_ac", "held_out_accuracy", "independence_gap", "krippendorff_alpha", "least_tasks", "length_slope",
    "mcnemar", "oracle_gap", "pair_accuracy", "paired_difference", "pairwise_accuracy", "position", "ppi_mean",
    "ppi_mean_by_strata", "rogan_gladen", "selective_threshold", "share", "smallest_difference",
    "soft_pairwise_accuracy", "tie_calibration", "wilson",
]  # fmt: skip
