"""Names of months, days and halves of the day: English, or another language's from Babel, whose CLDR Java has too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Names:
    """A language's names, by width: abbreviated, wide or narrow."""

    format_months: dict[str, tuple[str, ...]]
    standalone_months: dict[str, tuple[str, ...]]
    format_days: dict[str, tuple[str, ...]]
    halves: tuple[str, str]

    def months(self, width: str, *, standalone: bool) -> tuple[str, ...]:
        """January first."""
        return (self.standalone_months if standalone else self.format_months)[width]

    def days(self, width: str) -> tuple[str, ...]:
        """Monday first."""
        return self.format_days[width]

    def month(self, name: str) -> int:
        """A month by any of its names.

        Raises:
            ValueError: none is called so.
        """
        for months in (self.format_months, self.standalone_months):
            for width in ("wide", "abbreviated"):
                lowered = [one.lower() for one in months[width]]
                if name.lower() in lowered:
                    return lowered.index(name.lower()) + 1
        raise ValueError(f"{name!r} is no month")


def _english() -> Names:
    months, days = (
        {"wide": names, "abbreviated": tuple(one[:3] for one in names), "narrow": tuple(one[0] for one in names)}
        for names in (_MONTHS, _DAYS)
    )
    return Names(months, months, days, ("AM", "PM"))


@lru_cache(maxsize=64)
def names(locale: str) -> Names:
    """The names of a locale such as `en`, `de` or `pt_BR`.

    Raises:
        ValueError: there is no such locale.
    """
    tag = locale.replace("-", "_")
    if tag in ("", "en", "en_US"):
        return _english()
    from babel import Locale, UnknownLocaleError

    try:
        found = Locale.parse(tag)
    except (ValueError, UnknownLocaleError):
        raise ValueError(f"{locale!r} is no locale; use a language such as en, de or pt_BR") from None
    widths = ("wide", "abbreviated", "narrow")

    def months(context: str) -> dict[str, tuple[str, ...]]:
        return {one: tuple(found.months[context][one][n] for n in range(1, 13)) for one in widths}

    days = {one: tuple(found.days["format"][one][n] for n in range(7)) for one in widths}
    halves = found.day_periods["format"]["abbreviated"]
    return Names(months("format"), months("stand-alone"), days, (halves["am"], halves["pm"]))
