"""Forecasts in words, and for programs."""

from __future__ import annotations

from math import inf, isinf
from typing import Any

from gwmond.model.demand.forecast import HORIZON_S, Forecast
from gwmond.model.times import SECOND_US
from gwmond.reports.render.periods import span


def length(seconds: float) -> str:
    """Return how long something takes."""
    over = isinf(seconds)
    return f"more than {span(HORIZON_S * SECOND_US)}" if over else span(round(seconds) * SECOND_US)


def between(bounds: tuple[float, float]) -> str:
    """Return an interval; of one that begins beyond the horizon only that."""
    least, most = map(length, bounds)
    return least if bounds[0] == inf else f"{least} to {most}"


def forecast_text(forecast: Forecast) -> str:
    """Return a forecast in words."""
    return (
        f"within {length(forecast.middle_s)} as likely as not; half of such cases took "
        f"{between(forecast.half)}, nine of ten {between(forecast.nine_tenths)}"
    )


def forecast_record(forecast: Forecast) -> dict[str, Any]:
    """Return it for programs, in seconds; null: longer than the horizon."""
    half, nine = (list(map(_known, bounds)) for bounds in (forecast.half, forecast.nine_tenths))
    return {
        "number": forecast.number,
        "middle_seconds": _known(forecast.middle_s),
        "half_seconds": half,
        "nine_tenths_seconds": nine,
    }


def _known(seconds: float) -> float | None:
    return None if isinf(seconds) else round(seconds)
