"""The service beside a stock application of Django REST Framework and the thinnest Python, over the same rows.

    make bench SIZE=1m SECONDS=5 ROUNDS=3 CASES=get_user,list_first

The systems are measured in turn, round after round, so that what else the machine does meets all of them alike.
"""

from __future__ import annotations

import statistics
import sys
from argparse import Namespace
from collections.abc import Sequence

from benchmarks import cases
from benchmarks.measuring import Meter, Round, announce, save
from benchmarks.options import build_parser
from benchmarks.systems import System, copied, filled, postgresql, running

SYSTEMS = ("product", "stock", "limit")
CONNECTIONS = 16
SECONDS_TO_WARM_UP = 1.0
# Kept-alive connections stay with the worker that accepted them, and now and then one has nearly all of them.
LOPSIDED = 0.75


def main() -> None:
    options = build_parser("benchmarks.compare", size="1m").parse_args()
    steps = len(options.cases) * len(SYSTEMS)
    announce(steps * (options.rounds * options.seconds + SECONDS_TO_WARM_UP) + 20)
    with (
        postgresql() as cluster,
        copied(cluster, filled(cluster, options.size)) as database,
        running(SYSTEMS, database) as systems,
    ):
        cases.check(systems, options.cases, options.size)
        rounds = _measured(Meter(cluster), systems, options)
    print(f"\n{options.size:,} users, {CONNECTIONS} connections, {options.rounds} × {options.seconds:g} s\n")
    print(table(rounds))
    print(f"\nAll rounds: {save('compare', rounds)}")


def _measured(meter: Meter, systems: Sequence[System], options: Namespace) -> list[Round]:
    rounds: list[Round] = []
    total = len(options.cases) * options.rounds * len(systems)
    for case in options.cases:
        for number in range(options.rounds):
            for system in systems:
                # Anew each time: the service's tokens live 15 minutes.
                sent = cases.requests_of(case, system, options.size)
                if number == 0:
                    meter.generator.run(system.port, sent, CONNECTIONS, SECONDS_TO_WARM_UP)
                seconds = options.seconds
                took = meter.measured(system, case, options.size, sent, connections=CONNECTIONS, seconds=seconds)
                rounds.append(took)
                told = f"{case} {system.name} {took.rate:,.0f}/s, others had {took.foreign:.0%} of the machine"
                print(f"{len(rounds)}/{total} {told}", file=sys.stderr, flush=True)
    return rounds


COLUMNS = (
    *("Case", "System", "req/s", "× stock", "of the limit", "p50 ms", "p99 ms"),
    *("CPU server ms", "CPU PostgreSQL ms", "CPU load ms", "RSS MB", "PSS MB", "Rounds", "Others"),
)


def table(rounds: Sequence[Round]) -> str:
    """Medians of the rounds as one Markdown table; a round that one worker bore alone counts only where all are so."""
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|---|" + "---:|" * (len(COLUMNS) - 2)]
    for case in dict.fromkeys(measured.case for measured in rounds):
        every = {name: [took for took in rounds if (took.case, took.system) == (case, name)] for name in SYSTEMS}
        even = {name: [took for took in found if took.busiest <= LOPSIDED] or found for name, found in every.items()}
        rates = {name: statistics.median(took.rate for took in found) for name, found in even.items()}
        for name, found in even.items():
            lines.append(_line(found, f"{len(found)} of {len(every[name])}", rates))
    return "\n".join(lines)


def _line(found: Sequence[Round], used: str, rates: dict[str, float]) -> str:
    def median(field: str) -> float:
        return statistics.median(getattr(took, field) for took in found)

    name = found[0].system
    numbers = [f"{rates[name]:,.0f}", f"{rates[name] / rates['stock']:.2f}", f"{rates[name] / rates['limit']:.0%}"]
    numbers += [f"{median(field):.1f}" for field in ("p50", "p99")]
    numbers += [f"{median(field):.3f}" for field in ("server", "database", "load")]
    numbers += [f"{median(field):.0f}" for field in ("rss", "pss")]
    return "| " + " | ".join([found[0].case, name, *numbers, used, f"{median('foreign'):.0%}"]) + " |"


if __name__ == "__main__":
    main()
