"""What a second node brings: each node has one worker, pinned to a core of its own.

    python -m benchmarks.nodes --size 100k --seconds 5 --rounds 3 --cases get_user,list_first,post_order

Load and PostgreSQL share the machine, so that answers a second are those of a machine too small for both nodes. What a
request takes of a node says how many a node with a core of its own answers: 1000 / milliseconds. Two answer twice as
many, by as much less as a request costs more beside the other node.
"""

from __future__ import annotations

import os
import statistics
import sys
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

from benchmarks import cases
from benchmarks.load import Generator
from benchmarks.measuring import cpu, tree
from benchmarks.options import build_parser
from benchmarks.quotas import LOG_INS, SECONDS_TO_WARM_UP
from benchmarks.systems import System, copied, filled, postgresql

NODES = 2
CONNECTIONS_TO_EACH = 8
# Of tokens: nodes of one service have the same.
ISSUER = "http://127.0.0.1"


class Took(NamedTuple):
    """Answers a second of all nodes, and milliseconds of CPU that a request took of its node."""

    rate: float
    node: float


def measure(nodes: Sequence[System], generators: Sequence[Generator], case: str, users: int, seconds: float) -> Took:
    """Sends to all of the nodes at once."""
    # A token is good on each of them.
    requests = cases.requests_of(case, nodes[0], users)
    before = sum(cpu(process) for node in nodes for process in tree(node.process.pid))
    with ThreadPoolExecutor(len(nodes)) as pool:
        loads = list(
            pool.map(
                lambda node, generator: generator.run(node.port, requests, CONNECTIONS_TO_EACH, seconds),
                nodes,
                generators,
            )
        )
    spent = sum(cpu(process) for node in nodes for process in tree(node.process.pid)) - before
    answered = sum(len(load.times) for load in loads)
    return Took(sum(load.in_time for load in loads) / seconds, spent * 1000 / answered)


def compare(nodes: Sequence[System], case: str, options: Namespace) -> None:
    """Prints a line: the medians of all rounds, one node and both in turn."""
    generators = [Generator() for _ in nodes]
    found: dict[int, list[Took]] = {1: [], len(nodes): []}
    measure(nodes, generators, case, options.size, SECONDS_TO_WARM_UP)
    for _ in range(options.rounds):
        for count, took in found.items():
            took.append(measure(nodes[:count], generators, case, options.size, options.seconds))
            print(f"{case} {count} {took[-1].rate:,.0f}/s {took[-1].node:.3f} ms", file=sys.stderr, flush=True)
    one, both = ([statistics.median(column) for column in zip(*took, strict=True)] for took in found.values())
    gain = len(nodes) * one[1] / both[1]
    print(f"| {case} | {one[0]:,.0f} | {both[0]:,.0f} | {one[1]:.3f} | {both[1]:.3f} | {gain:.2f} |", flush=True)


def main() -> None:
    options = build_parser("benchmarks.nodes", cases="get_user,list_first,post_order").parse_args()
    with ExitStack() as stack:
        cluster = stack.enter_context(postgresql())
        database = stack.enter_context(copied(cluster, filled(cluster, options.size)))
        nodes = []
        cores = os.sched_getaffinity(0)
        for core in sorted(cores)[:NODES]:
            # What it starts inherits it, threads too.
            os.sched_setaffinity(0, {core})
            nodes.append(System("product", database, WORKERS="1", PUBLIC_URL=ISSUER, **LOG_INS))
            os.sched_setaffinity(0, cores)
            stack.callback(nodes[-1].stop)
            nodes[-1].wait()
        print("| Case | req/s, one node | both | node ms a request, one | both | × |")
        print("|---|---:|---:|---:|---:|---:|")
        for case in options.cases:
            compare(nodes, case, options)


if __name__ == "__main__":
    main()
