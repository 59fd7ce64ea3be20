"""Patients of the ``nih`` profile: labels, follow-ups, sex, age and view as counted in the real table.

A follow-up keeps its label set with the share counted there, or else draws anew from all label sets; so every film on
its own has the real frequencies and the real co-occurrence.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from medgrape.data.phantom.sitting import Sitting, chance
from medgrape.data.phantom.statistics import NihStatistics, nih_statistics


def nih_visits(seed: int, patient: int) -> Iterator[Sitting]:
    """All films of one patient."""
    counted = nih_statistics()
    random = chance(seed, "nih", patient, "history")
    sex: Literal["M", "F"] = "F" if random.random() < counted.female_share else "M"
    ages = counted.age_quantiles[sex]
    age = float(np.interp(random.random(), np.linspace(0, 1, len(ages)), ages))
    visits = 1 + int(random.choice(len(counted.films_per_patient), p=counted.films_per_patient))
    findings: tuple[str, ...] = ()
    for visit in range(visits):
        if visit == 0 or random.random() >= counted.kept:
            findings = _label_set(counted, random)
        ap_share = counted.ap_shares[min(len(findings), len(counted.ap_shares) - 1)]
        yield Sitting(
            profile="nih",
            seed=seed,
            patient=patient,
            visit=visit,
            sex=sex,
            age=int(age) + visit // 4,
            view="AP" if random.random() < ap_share else "PA",
            class_name="finding" if findings else "no_finding",
            findings=findings,
            concepts=findings,
            devices=(),
        )


def _label_set(counted: NihStatistics, random: np.random.Generator) -> tuple[str, ...]:
    place = random.choice(len(counted.label_sets), p=counted.label_set_shares)
    return counted.named(int(counted.label_sets[place]))
