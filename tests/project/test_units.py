"""Sizes, durations and numbers at the edges of their units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone._units import duration, number, size
from loadstone.cli._show import human_bytes, human_time
from loadstone.model.description import bytes_text, time_text
from loadstone.report import facts
from loadstone.report.figure import cell_text


@pytest.mark.parametrize(
    "ns, text",
    [
        (0, "0 ns"),
        (999.4, "999 ns"),
        (999.6, "1 us"),
        (999_499, "999 us"),
        (999_600, "1 ms"),
        (-999_600, "-1 ms"),
        (999_600_000, "1 s"),
        (12_345_678, "12.3 ms"),
        (59.99e9, "60 s"),
        (119.4e9, "119 s"),
        (119.96e9, "2 min"),
        (7199.9e9, "2 h"),
        (999.6 * 3600e9, "1,000 h"),
        (123_456 * 3600e9, "123,456 h"),
    ],
)
def test_durations(ns, text):
    assert duration(ns) == human_time(ns) == text


def test_reports_and_models_have_more_digits_of_seconds_and_no_powers_of_ten():
    assert facts.duration(999_600) == "1 ms" and facts.duration(999.6) == "1 µs"
    assert facts.duration(0.99996e9) == "1 s" and facts.duration(12.345e9) == "12.35 s"
    assert facts.duration(10_000e9) == "2.78 h" and facts.duration(None) == "–"
    assert time_text(999_600) == "1 ms" and time_text(10**13) == "2.78 h"


@pytest.mark.parametrize(
    "count, short, long",
    [
        (0, "0 B", "0 B"),
        (1023, "1023 B", "1023 B"),
        (1024, "1.0 KiB", "1 KiB"),
        (1023.6, "1.0 KiB", "1 KiB"),
        (1023.6 * 1024, "1023.6 KiB", "1 MiB"),
        (1023.96 * 1024, "1.0 MiB", "1 MiB"),
        (-1023.96 * 1024, "-1.0 MiB", "-1 MiB"),
        (1536 << 20, "1.5 GiB", "1.5 GiB"),
        ((1 << 40) - 1, "1.0 TiB", "1 TiB"),
        (12_345 << 40, "12.1 PiB", "12.06 PiB"),
        (20_000 << 60, "20000.0 EiB", "20,000 EiB"),
    ],
)
def test_sizes(count, short, long):
    assert human_bytes(count) == short
    assert facts.size(count) == bytes_text(count) == size(count) == long


@pytest.mark.parametrize(
    "value, text",
    [
        (0.9996, "0.9996"),
        (0.99996, "1"),
        (999.94, "999.9"),
        (1234.5, "1,234"),
        (9999.4, "9,999"),
        (9999.6, "10,000"),
        (1.2e9, "1,200,000,000"),
    ],
)
def test_numbers(value, text):
    assert number(value) == cell_text(value) == text
    assert cell_text(0.00012345) == "0.000123" and number(999.6, 3) == "1,000"


@given(st.floats(1, 1e22))
def test_what_is_written_is_close_and_below_the_next_unit(ns):
    figure, unit = duration(ns).split(" ")
    scale = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}[unit]
    told = float(figure.replace(",", ""))
    assert "e" not in figure and told * scale == pytest.approx(ns, rel=0.006)
    assert unit == "h" or told < (120 if unit in ("s", "min") else 1000)
    figure, unit = size(ns).split(" ")
    told = float(figure.replace(",", ""))
    assert "e" not in figure and (told < 1024 or unit == "EiB")
