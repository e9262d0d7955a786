"""What the programs that measure are told on the command line."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from benchmarks.cases import CASES

MIN_USERS = 10_000


def build_parser(program: str, *, size: str = "100k", cases: str = ",".join(CASES)) -> ArgumentParser:
    """A parser of the options of a program that compares systems in rounds.

    Args:
        program: its name.
        size: how many users there are where nothing else is asked for, as `parse_size` reads it.
        cases: which are measured then, separated by commas.
    """
    parser = ArgumentParser(prog=program)
    parser.add_argument("--size", type=parse_size, default=size)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cases", type=_parse_cases, default=cases)
    return parser


def parse_size(text: str) -> int:
    """A number of users: 10k, 1m, 10m. Fewer would have too few who may read everything."""
    factors = {"k": 1_000, "m": 1_000_000}
    users = int(text[:-1]) * factors[text[-1]] if text[-1:] in factors else int(text)
    if users < MIN_USERS:
        raise ArgumentTypeError(f"at least {MIN_USERS:,} users are needed")
    return users


def _parse_cases(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(CASES):
        raise ArgumentTypeError(f"there is no case {', '.join(unknown)}; there are {', '.join(CASES)}")
    return names
