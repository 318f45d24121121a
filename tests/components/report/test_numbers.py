from __future__ import annotations

import pytest

from components.errors import ArtifactError
from components.report.numbers import FORMATS, number
from components.report.sources import JsonFile, pointer


@pytest.mark.parametrize(
    ("kind", "value", "en", "zh"),
    [
        ("score", 0.7, ".700", "0.700"),
        ("score", 1.0, "1.000", "1.000"),
        ("score", -0.0124, "−.012", "−0.012"),
        ("score", -0.0001, ".000", "0.000"),
        ("points", 0.032, "3.2 points", "3.2 个百分点"),
        ("points", 0.01, "1.0 point", "1.0 个百分点"),
        ("loss", -0.02, "2.0 points", "2.0 个百分点"),
        ("percent", 0.8, "80 %", "80 %"),
        ("percent", 0.125, "12.5 %", "12.5 %"),
        ("p", 0.0123, "p = .012", "p = 0.012"),
        ("p", 0.0004, "p < .001", "p < 0.001"),
        ("p", 1.0, "p = 1", "p = 1"),
        ("count", 12345.0, "12,345", "12,345"),
        ("about", 12345, "12,300", "12,300"),
        ("about", 9.874, "9.87", "9.87"),
        ("big", 4_100_000, "4.1 M", "4.1 M"),
        ("big", 999_900, "1 M", "1 M"),
        ("big", 950, "950", "950"),
        ("size", 2_300_000, "2.3 MB", "2.3 MB"),
        ("size", 999_999, "1 MB", "1 MB"),
        ("seconds", 104, "1 min 44 s", "1 分 44 秒"),
        ("seconds", 59.7, "1 min 0 s", "1 分 0 秒"),
        ("seconds", 3599.9, "1 h 0 min", "1 小时 0 分"),
        ("seconds", 7980, "2 h 13 min", "2 小时 13 分"),
        ("seconds", 4.24, "4.2 s", "4.2 秒"),
        ("seconds", 0.00041, "0.41 ms", "0.41 毫秒"),
        ("seconds", 0, "0 s", "0 秒"),
        ("seeds", 1, "1 seed", "1 个随机种子"),
        ("general", 0.8125, ".812", "0.812"),
    ],
)
def test_numbers_are_rounded_for_readers(kind: str, value: float, en: str, zh: str) -> None:
    assert (FORMATS[kind](value, "en"), FORMATS[kind](value, "zh")) == (en, zh)


def test_a_list_is_shown_by_its_length() -> None:
    file = JsonFile("S1", {"a/b": {"found": ["x", "y"]}})
    found = number(file, "a/b", "found")
    assert (found.text, found.source) == ("2", "S1#/a~1b/found")
    assert pointer("~", 0) == "/~0/0"


@pytest.mark.parametrize("value", [None, "3", True, float("nan"), float("inf")])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ArtifactError, match="S1#/x"):
        number(JsonFile("S1", {"x": value}), "x")
