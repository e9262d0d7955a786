"""How the service answers as its users grow: one client, and a database of its own for each size.

    make bench-growth SIZES=10k,1m,10m SECONDS=5

Prints milliseconds at the median as a table, and draws them.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

from benchmarks.cases import requests_of
from benchmarks.measuring import Meter, Round, announce, save
from benchmarks.options import parse_size
from benchmarks.systems import FOLDER, address, filled, postgresql, running

CASES = {
    "get_user": "one user",
    "list_cursor": "a page by cursor",
    "list_first": "the first page",
    "list_mid": "the page in the middle",
    "list_last": "the last page",
    "total": "the total, with one row",
}
SECONDS_TO_WARM_UP = 1.0
COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 60, 190, 40, 350


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.growth")
    parser.add_argument(
        "--sizes", type=lambda text: [parse_size(part) for part in text.split(",")], default="10k,1m,10m"
    )
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    announce(len(options.sizes) * (len(CASES) * (options.seconds + SECONDS_TO_WARM_UP) + 10))
    rounds: list[Round] = []
    with postgresql() as cluster:
        meter = Meter(cluster)
        for users in options.sizes:
            with running(["product"], address(cluster, filled(cluster, users))) as (product,):
                for case, name in CASES.items():
                    requests = requests_of(case, product, users)
                    meter.generator.run(product.port, requests, 1, SECONDS_TO_WARM_UP)
                    took = meter.measured(product, case, users, requests, connections=1, seconds=options.seconds)
                    rounds.append(took)
                    told = f"{users:,} users: {name} {took.p50:.2f} ms"
                    print(f"{told}, others had {took.foreign:.0%} of the machine", file=sys.stderr, flush=True)
    print(f"\n{table(rounds)}\n\nAll numbers: {save('growth', rounds)}")
    picture = FOLDER / "growth.svg"
    picture.write_text(drawn(rounds))
    print(f"Picture: {picture}")


def table(rounds: Sequence[Round]) -> str:
    """Milliseconds at the median by case and number of users, as Markdown."""
    sizes = sorted({took.users for took in rounds})
    lines = [f"| ms | {' | '.join(f'{users:,}' for users in sizes)} |", "|---|" + "---:|" * len(sizes)]
    for case, name in CASES.items():
        found = {took.users: took.p50 for took in rounds if took.case == case}
        lines.append(f"| {name} | {' | '.join(f'{found[users]:.2f}' for users in sizes)} |")
    return "\n".join(lines)


def drawn(rounds: Sequence[Round]) -> str:
    """The same as a picture, both axes logarithmic."""
    sizes = sorted({took.users for took in rounds})
    low, high = (bound(math.log10(took.p50) for took in rounds) for bound in (min, max))
    least, most = math.floor(low), max(math.floor(low) + 1, math.ceil(high))

    def x(users: int) -> float:
        span = math.log10(sizes[-1] / sizes[0]) or 1
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log10(users / sizes[0]) / span

    def y(milliseconds: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (math.log10(milliseconds) - least) / (most - least)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" style="font: 13px sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{LEFT}" y="22">Milliseconds at the median, one client, by the number of users</text>',
    ]
    for tick in (10**power for power in range(least, most + 1)):
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts += [f'<text x="{x(users):.1f}" y="{BOTTOM + 22}" text-anchor="middle">{users:,}</text>' for users in sizes]
    # Names stand in the order in which the lines end, each with room for itself.
    ends = {took.case: y(took.p50) for took in rounds if took.users == sizes[-1]}
    below = -math.inf
    for case, colour in sorted(zip(CASES, COLOURS, strict=True), key=lambda pair: ends[pair[0]]):
        points = [(x(took.users), y(took.p50)) for took in rounds if took.case == case]
        line = " ".join(f"{left:.1f},{top:.1f}" for left, top in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="{colour}"/>' for left, top in points]
        below = max(below + 16, ends[case] + 4)
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{below:.1f}" fill="{colour}">{CASES[case]}</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
