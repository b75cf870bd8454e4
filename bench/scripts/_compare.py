"""Compare what a script printed with and without us, after taking out what time alone changes.

Two plain runs of one script already differ: clocks, speeds, process numbers and the moments
at which a progress bar redraws. Each normaliser below takes out one of these and nothing
else. Losses and counts stay, so that a changed random state would show.
"""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["NORMALISERS", "Normaliser", "differences", "normalise", "normaliser_named"]

_NUMBER = r"\d+(?:[.,]\d+)?(?:e[+-]?\d+)?"


@dataclass(frozen=True, kw_only=True, slots=True)
class Normaliser:
    """One thing that two runs of the same script may print differently."""

    name: str
    """Short, for the table and the README."""

    why: str
    """What varies."""

    pattern: re.Pattern[str]
    """What is replaced."""

    by: str
    """What replaces it."""


NORMALISERS = (
    Normaliser(
        name="escapes",
        why="terminal colours and cursor moves",
        pattern=re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|.\x08"),
        by="",
    ),
    Normaliser(
        name="redraws",
        why="of a line redrawn with carriage returns only the last state is kept",
        pattern=re.compile(r"(?m)^.*\r(?=[^\r\n]*$)"),
        by="",
    ),
    Normaliser(
        name="bars",
        why="the state at which a tqdm bar was drawn last, and the blanks that wipe it",
        pattern=re.compile(r"[^\r\n]*?\d+%\|[^\r\n]*?\[[^\]\r\n]*\]|(?m:^ +$)"),
        by="",
    ),
    Normaliser(
        name="dates",
        why="dates and times of day",
        pattern=re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?"),
        by="<date>",
    ),
    Normaliser(
        name="clocks",
        why="elapsed and remaining time of progress bars",
        pattern=re.compile(r"\d+:\d\d(?::\d\d)?(?:\.\d+)?(?:<(?:\d+:\d\d(?::\d\d)?|\?))?"),
        by="<clock>",
    ),
    Normaliser(
        name="speeds",
        why="steps and frames per second, model FLOPs utilisation",
        pattern=re.compile(
            rf" *(?:(?:{_NUMBER}|\?) ?(?:it|batch|step|sample)s?/s|{_NUMBER} ?s/it"
            rf"|SPS: \d+|mfu -?{_NUMBER}%)"
        ),
        by=" <speed>",
    ),
    Normaliser(
        name="durations",
        why="numbers followed by a unit of time",
        pattern=re.compile(rf" *{_NUMBER} ?(?:us|µs|ms|s|seconds)(?:/(?:step|epoch))?\b"),
        by=" <time>",
    ),
    Normaliser(
        name="processes",
        why="Unix times, process numbers and machine names in file names",
        pattern=re.compile(r"(?<=__)\d{10}\b|(?<=tfevents\.)\S+"),
        by="<process>",
    ),
    Normaliser(
        name="temporary",
        why="names of temporary files",
        pattern=re.compile(r"(?:/[\w.+-]+)*/tmp/[\w./+-]+"),
        by="<temporary>",
    ),
    Normaliser(
        name="addresses",
        why="addresses of objects in memory",
        pattern=re.compile(r"\b0x[0-9a-f]{6,}\b"),
        by="<address>",
    ),
)
"""Applied to every script, in this order."""

_OPTIONAL = (
    Normaliser(
        name="unseeded",
        why="losses and metrics of a script that seeds nothing itself",
        pattern=re.compile(r" *-?\d\.\d{2,}(?:e-\d+)? *"),
        by=" <unseeded> ",
    ),
)


def normaliser_named(name: str) -> Normaliser:
    """Find a normaliser that only some scripts ask for.

    Raises:
        KeyError: No optional normaliser has that name.
    """
    return {each.name: each for each in _OPTIONAL}[name]


def normalise(text: str, extra: Iterable[Normaliser] = ()) -> str:
    r"""Take out what time alone changes.

    >>> normalise("loss 0.5, 12.3ms\n")
    'loss 0.5, <time>\n'
    >>> normalise(" 10%|#| 1/10 [00:01<00:09, 1.0it/s]\r99%|##| 9/10 [00:10<00:01, 1.0it/s]saved\n")
    'saved\n'
    >>> normalise("saved /somewhere/tmp/ab12/x.pt\n")
    'saved <temporary>\n'
    """
    for each in (*NORMALISERS, *extra):
        text = each.pattern.sub(each.by, text)
    return text


def differences(plain: str, observed: str, extra: Iterable[Normaliser] = ()) -> list[str]:
    r"""Give the lines that differ after normalising, as a unified diff without context.

    >>> differences("a\nb\n", "a\nc\n")
    ['-b', '+c']
    >>> differences("1.5s", "1.7s")
    []
    """
    extra = tuple(extra)
    lines = difflib.unified_diff(
        normalise(plain, extra).splitlines(),
        normalise(observed, extra).splitlines(),
        lineterm="",
        n=0,
    )
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
