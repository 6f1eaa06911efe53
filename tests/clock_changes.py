"""Instants around changes of the clocks, for tests of local times."""

from __future__ import annotations

import datetime as dt

__all__ = ["CHANGES", "MINUTE", "instants"]

MINUTE = dt.timedelta(minutes=1)
CHANGES = {
    "UTC": ["2024-03-31 01:00"],
    "Europe/Rome": ["2024-03-31 01:00", "2024-10-27 01:00", "2500-03-28 01:00", "1970-05-31 00:00"],
    "America/New_York": ["2024-03-10 07:00", "2024-11-03 06:00", "2100-11-07 06:00"],
    "Australia/Lord_Howe": ["2024-04-06 15:00", "2024-10-05 15:30"],  # half an hour
    "America/Havana": ["2024-03-10 05:00", "2024-11-03 05:00"],  # midnight is skipped, and there twice
    "America/Sao_Paulo": ["2018-11-04 03:00", "2018-02-18 02:00"],  # 23:00 is there twice
    "America/Toronto": ["1919-03-31 04:30"],  # 23:30 to 00:30 is skipped
    "Pacific/Apia": ["2011-12-30 10:00"],  # a whole day is skipped
    "Asia/Kolkata": ["2024-01-01 00:00"],
    "Africa/Casablanca": ["2024-03-10 02:00", "2024-04-14 02:00"],
}
"""Changes of zones, in UTC, and an instant of zones that have none."""

SHIFTS = (
    -1501, -1439, -720, -91, -61, -60, -59, -31, -30, -1, 0, 1, 29, 30, 31, 59,
    60, 61, 90, 119, 120, 725, 1500,
)  # fmt: skip


def instants(zone: str) -> list[dt.datetime]:
    """Instants around the changes of a zone."""
    return [
        dt.datetime.fromisoformat(f"{change}+00:00") + shift * MINUTE
        for change in CHANGES[zone]
        for shift in SHIFTS
    ]
