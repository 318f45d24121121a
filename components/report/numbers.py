"""Numbers as readers see them: three digits or a sensible unit, never more than a test set can tell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal

from components.errors import ArtifactError
from components.report.content import Number
from components.report.sources import JsonFile

ReportLanguage = Literal["zh", "en"]
Format = Callable[[Any, ReportLanguage], str]
MINUS = "−"


def number(file: JsonFile, *keys: str | int, kind: str = "count", language: ReportLanguage = "en") -> Number:
    """The number at a place of a file, in words of its kind.

    Args:
        file: File that holds it.
        keys: Keys and positions that lead to it.
        kind: Name in ``FORMATS``.
        language: Language of units.

    Raises:
        ArtifactError: There is no such value, or it is no number.
    """
    value = file.at(*keys)
    shown = len(value) if isinstance(value, list | dict) else value
    if isinstance(shown, bool) or not isinstance(shown, int | float) or not math.isfinite(shown):
        raise ArtifactError(f"{file.place(*keys)} is {value!r}, a report needs a number")
    return Number(FORMATS[kind](shown, language), value, file.place(*keys))


def score(value: float, language: ReportLanguage) -> str:
    """A score between 0 and 1 as .700; Chinese keeps the zero."""
    text = f"{abs(value):.3f}"
    if language == "en" and text.startswith("0"):
        text = text[1:]
    return _signed(value, text)


def plain_points(value: float, _: ReportLanguage) -> str:
    """A difference of scores in points, hundredths of the scale."""
    return _signed(value, f"{100 * abs(value):.1f}")


def points(value: float, language: ReportLanguage) -> str:
    """The same with its unit."""
    unit = "个百分点" if language == "zh" else "point" if f"{100 * abs(value):.1f}" == "1.0" else "points"
    return f"{plain_points(value, language)} {unit}"


def percent(value: float, _: ReportLanguage) -> str:
    """A share in percent."""
    digits = 0 if float(100 * value).is_integer() else 1
    return f"{100 * value:.{digits}f} %"


def p_value(value: float, language: ReportLanguage) -> str:
    """A p value with its relation."""
    if value < 0.001:
        return f"p < {score(0.001, language)}"
    return f"p = {score(value, language)}" if value < 0.9995 else "p = 1"


def count(value: float, _: ReportLanguage) -> str:
    """A whole number with separators."""
    return _signed(value, f"{abs(value):,.0f}")


def seeds(value: float, language: ReportLanguage) -> str:
    """A number of random seeds."""
    return f"{value:.0f} 个随机种子" if language == "zh" else f"{value:.0f} seed{'' if value == 1 else 's'}"


def about(value: float, _: ReportLanguage) -> str:
    """A large number in three significant digits, with separators."""
    return f"{_three_digits(value):,.0f}" if value >= 100 else f"{value:.3g}"


def big(value: float, _: ReportLanguage) -> str:
    """A count in three digits and a unit: 15.4 k, 2.48 M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if _three_digits(value) >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f}"


def size(value: float, _: ReportLanguage) -> str:
    """Bytes in decimal units: 2.3 MB."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if _three_digits(value) >= limit:
            return f"{_three_digits(value) / limit:.3g} {unit}"
    return f"{value:.0f} B"


def duration(value: float, language: ReportLanguage) -> str:
    """Seconds as 12 ms, 4.2 s, 1 min 44 s or 2 h 13 min."""
    milli, second, minute, hour = ("毫秒", "秒", "分", "小时") if language == "zh" else ("ms", "s", "min", "h")
    if value < 0.0995:
        return f"{1000 * value:.2g} {milli}" if value else f"0 {second}"
    if value < 59.5:
        return f"{value:.2g} {second}" if value < 9.95 else f"{value:.0f} {second}"
    if value < 3570:
        minutes, seconds = divmod(round(value), 60)
        return f"{minutes} {minute} {seconds} {second}"
    hours, minutes = divmod(round(value / 60), 60)
    return f"{hours} {hour} {minutes} {minute}"


def general(value: float, language: ReportLanguage) -> str:
    """A number of unknown kind: whole ones as counts, shares and other small ones as scores, others in three digits."""
    if isinstance(value, int) or (float(value).is_integer() and abs(value) > 1):
        return count(value, language)
    return score(value, language) if abs(value) <= 1 else _signed(value, f"{abs(value):.3g}")


def moment(value: Any) -> str:
    """A time in ISO 8601 as 2026-01-02 03:04:05 UTC; anything else as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\+00:00", str(value))
    return f"{found[1]} {found[2]} UTC" if found else str(value)


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _signed(value: float, text: str) -> str:
    return MINUS + text if value < 0 and any(digit in text for digit in "123456789") else text


FORMATS: dict[str, Format] = {
    "score": score,
    "points": points,
    "pt": plain_points,
    "loss": lambda value, language: points(-value, language),
    "percent": percent,
    "p": p_value,
    "count": count,
    "seeds": seeds,
    "about": about,
    "big": big,
    "size": size,
    "seconds": duration,
    "general": general,
}
"""How a value is shown, by kind; ``loss`` is a difference seen from the other side."""
