"""Names of months, days, halves of the day and eras: English, or another language's from Babel, whose CLDR Java has."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Names:
    """A language's names, by width: abbreviated, wide or narrow. Months begin with January, days with Monday."""

    months: dict[str, tuple[str, ...]]
    months_alone: dict[str, tuple[str, ...]]
    days: dict[str, tuple[str, ...]]
    halves: tuple[str, str]
    era: str
    language: str = "en"

    def month(self, name: str) -> int:
        """A month by any of its names, in any case.

        Raises:
            ValueError: none is called so.
        """
        for months in (self.months, self.months_alone):
            for width in ("wide", "abbreviated"):
                lowered = [month.lower() for month in months[width]]
                if name.lower() in lowered:
                    return lowered.index(name.lower()) + 1
        raise ValueError(f"{name!r} is not a month")


def _widths(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {
        "wide": names,
        "abbreviated": tuple(name[:3] for name in names),
        "narrow": tuple(name[0] for name in names),
    }


ENGLISH = Names(_widths(_MONTHS), _widths(_MONTHS), _widths(_DAYS), ("AM", "PM"), "AD")


def _short(names: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {**names, "wide": names["abbreviated"]}


_SHORT = replace(ENGLISH, months=_short(ENGLISH.months), months_alone=_short(ENGLISH.months), days=_short(ENGLISH.days))


@lru_cache(maxsize=64)
def of_locale(locale: str) -> Names:
    """The names of a locale such as `en`, `de` or `pt_BR`.

    Raises:
        ValueError: there is no such locale.
    """
    tag = locale.replace("-", "_")
    if tag in ("", "en", "en_US"):
        return ENGLISH
    from babel import Locale, UnknownLocaleError, localedata

    try:
        language = Locale.parse(tag)
    except (ValueError, UnknownLocaleError):
        raise ValueError(f"{locale!r} is no locale; use a language such as en, de or pt_BR") from None
    # Languages share what they inherit, and Babel keeps there what an alias is in the one that is asked first.
    data = localedata.LocaleDataDict({name: deepcopy(part) for name, part in localedata.load(str(language)).items()})
    months, alone = _by_width(data["months"]["format"]), _by_width(data["months"]["stand-alone"])
    halves = data["day_periods"]["format"]["abbreviated"]
    era = data["eras"]["abbreviated"][1]
    return Names(months, alone, _by_width(data["days"]["format"]), (halves["am"], halves["pm"]), era, tag)


def _by_width(names: Mapping[str, Mapping[int, str]]) -> dict[str, tuple[str, ...]]:
    """Babel's names of months or days, which have numbers, in order."""
    return {
        width: tuple(name for _, name in sorted(names[width].items())) for width in ("wide", "abbreviated", "narrow")
    }


def of_language(locale: str) -> Names:
    """The names that Java's `new Locale(locale)` has: those of a bare language, and else short English ones."""
    language = locale.lower()
    if language == "en":
        return ENGLISH
    from babel import localedata

    bare = language.isalpha() and language != "root" and localedata.exists(language)
    return of_locale(language) if bare else _SHORT
