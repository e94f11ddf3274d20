"""One plain sentence for the top of a page: what is sure of one sampler beside others. At most 25 words, always.

What is sure is a difference of `studies.comparison` whose interval leaves zero out. One thing that is sure of one pair
is told with its interval; two are told by their size; of several others, or of several settings, it is told how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fedpcs.studies.comparison import MEASURES, Comparison, Measure, Verdict

_NAMES: dict[Measure, str] = {"accuracy": "accuracy", "epsilon": "ε", "paid": "pay"}
# What a sampler does that is lower or higher than the other; {} is by how much.
_DOES: dict[Measure, dict[Verdict, str]] = {
    "accuracy": {"lower": "is {}less accurate", "higher": "is {}more accurate"},
    "epsilon": {"lower": "spends {}less ε", "higher": "spends {}more ε"},
    "paid": {"lower": "pays {}less", "higher": "pays {}more"},
}
_SIDES: tuple[Verdict, ...] = ("lower", "higher")
_MOST_SPELLED_OUT = 2  # clauses that are spelled out; more of them are named in brief


def headline(compared: Sequence[Comparison], num_settings: int = 1) -> str:
    """Say in one sentence what is sure of a sampler beside others.

    Args:
        compared: Comparisons of one sampler, with each of the others in every setting.
        num_settings: How many settings there are.

    Example:
        >>> from fedpcs.studies.comparison import Difference
        >>> accuracy = Difference("accuracy", 0.019, -0.058, 0.097, False, 5)
        >>> pay = Difference("paid", -0.317, -0.331, -0.303, False, 5)
        >>> found = Comparison("fedpcs", "random", (accuracy, pay), {"epsilon": "no client spends any ε"}, 5)
        >>> print(headline([found]).replace("\N{NO-BREAK SPACE}", " "))
        fedpcs pays 31.7 % less than random (30.3 to 33.1 %); accuracy cannot be told apart.
    """
    sampler, known = compared[0].sampler, [one for one in compared if one.num_seeds > 0]
    others = list(dict.fromkeys(one.other for one in known or compared))
    whom = others[0] if len(others) == 1 else f"{len(others)} others"
    if not known:
        return f"No seed is done with both {sampler} and {others[0] if len(others) == 1 else 'another sampler'} yet."
    if all(one.num_seeds == 1 for one in known):
        return f"One seed cannot tell {sampler} from {whom}."
    where = f" in {num_settings} settings" if num_settings > 1 else ""
    clauses = _clauses(known)
    known_measures = {clause.measure for clause in clauses}
    rest = _rest([measure for measure in MEASURES if measure not in known_measures], known)
    if not clauses and rest.startswith("only "):
        return f"{rest[0].upper()}{rest[1:]}.".replace(", ", "; ", 1)
    if not clauses:
        return f"No sure difference between {sampler} and {whom}{where}: {rest}."
    if len(known) == 1:
        text = f"{sampler} {_of_pair(known[0], clauses)}"
    elif len(clauses) <= _MOST_SPELLED_OUT:
        text = f"{sampler} {_of_many(known, clauses, num_settings > 1)}"
    else:
        text = f"{sampler} against {whom}{where}: {', '.join(_short(clause, known) for clause in clauses)}"
    return f"{text}; {rest}." if rest else f"{text}."


@dataclass(frozen=True)
class _Clause:
    """One sampler is surely lower, or higher, in one measure than it is with others."""

    measure: Measure
    side: Verdict
    found: tuple[Comparison, ...]

    def does(self, size: str = "") -> str:
        """Return what the sampler does, by how much if that is given."""
        return _DOES[self.measure][self.side].format(f"{size} " if size else "")


def _clauses(known: Sequence[Comparison]) -> list[_Clause]:
    every = [
        _Clause(measure, side, tuple(one for one in known if (sure := one.of(measure)) and sure.verdict == side))
        for measure in MEASURES
        for side in _SIDES
    ]
    return [clause for clause in every if clause.found]


def _of_pair(found: Comparison, clauses: Sequence[_Clause]) -> str:
    """Return what is sure with one other; the interval too, if it is one thing."""
    sizes = [difference.size for clause in clauses if (difference := found.of(clause.measure))]
    first, *more = [clause.does(size) for clause, size in zip(clauses, sizes, strict=True)]
    text = listed([f"{first} than {found.other}", *more])
    only = found.of(clauses[0].measure)
    return f"{text} {only.interval}" if only and not more else text


def _of_many(known: Sequence[Comparison], clauses: Sequence[_Clause], has_settings: bool) -> str:
    """Return what is sure with some of several others, or in some of several settings."""
    others = {one.other for one in known}
    whom = f" than {known[0].other}" if len(others) == 1 else ""
    unit = "others" if not has_settings else "settings" if whom else "comparisons"
    join = " in " if has_settings else " than "
    first, *more = clauses
    counted = _counted(first, known, unit)
    parts = [f"{first.does()}{whom}{join}{counted}"]
    parts += [
        f"{one.does()}{join}{_few(one, known) if counted.endswith(unit) else _counted(one, known, unit)}"
        for one in more
    ]
    return " and ".join(parts)


def _counted(clause: _Clause, known: Sequence[Comparison], unit: str) -> str:
    number = len(clause.found)
    if number == 1 and unit == "others":
        return clause.found[0].other
    if number == len(known):
        return f"both {unit}" if number == 2 else f"all {number} {unit}"
    return f"{number} of {len(known)} {unit}"


def _few(clause: _Clause, known: Sequence[Comparison]) -> str:
    return "all" if len(clause.found) == len(known) else str(len(clause.found))


def _short(clause: _Clause, known: Sequence[Comparison]) -> str:
    return f"{clause.side} {_NAMES[clause.measure]} ({_few(clause, known)})"


def _rest(measures: Sequence[Measure], known: Sequence[Comparison]) -> str:
    """Say of measures in which nothing is sure whether they are equal, or one sampler's alone."""
    verdicts = {measure: [each.verdict for one in known if (each := one.of(measure))] for measure in measures}
    equal = [_NAMES[one] for one, found in verdicts.items() if found and set(found) == {"equal"}]
    doubtful = [_NAMES[one] for one, found in verdicts.items() if found and set(found) != {"equal"}]
    parts = []
    for measure in measures:
        reasons = {one.left_out.get(measure, "") for one in known}
        parts += [reason for reason in reasons if len(reasons) == 1 and reason.startswith("only ")]
    parts += [f"{listed(equal)} {'is' if len(equal) == 1 else 'are'} equal"] if equal else []
    parts += [f"{listed(doubtful)} cannot be told apart"] if doubtful else []
    return ", ".join(parts)


def listed(parts: Sequence[str]) -> str:
    """Return parts as a list in a sentence.

    Example:
        >>> listed(["one"]), listed(["one", "two", "three"])
        ('one', 'one, two and three')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
