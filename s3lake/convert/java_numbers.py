"""Numbers as Java prints them, which is how connectors spell them in keys and texts."""

from decimal import Decimal


def java_double(value: float) -> str:
    """Java's `Double.toString`: plain from 10^-3 to 10^7, else with E."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{len(digits) - 1 + int(exponent)}"
