"""What is judged of a measurement, and how it is printed."""

import asyncio
from collections import Counter

import pytest

from benchmarks.load import Load
from tests.load.cases import LARGE_BODY, Found
from tests.load.client import Answer, ask, wire
from tests.load.measuring import Machine, Readers, Row, summarize
from tests.load.probe import Health, merge
from tests.load.report import COLUMNS, table

UNLOADED = Readers(rate=1000.0, p50=1.0, p99=5.0, longest=9.0)
OK = Counter({200: 150})


def row(*, rate=500.0, p99=50.0, longest=0.05, statuses=OK, found=None, errors=()):
    loaded = Readers(rate, 2.0, p99, 60.0)
    machine = Machine(busy=0.99, clients=0.25, others=0.1)
    seen = Health(longest, 0.004, statuses)
    return Row("logins", UNLOADED, loaded, Health(0.003, 0.001, OK), seen, found or Found(), machine, [*errors])


def test_bounds_hold_at_their_values():
    assert row().broken() == []


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ({"p99": 50.6}, "p99 of the readers 51 ms > 50 ms"),
        ({"rate": 494.0}, "throughput of the readers 49% < 50%"),
        ({"longest": 0.0512}, "/health/live after 51 ms > 50 ms"),
        ({"statuses": Counter({200: 149, None: 1})}, "/health/live answered {200: 149, None: 1}"),
        ({"errors": ["a reader: No answer within 60 s"]}, "a reader: No answer within 60 s"),
        ({"found": Found(broken=["answered {500: 1}"])}, "answered {500: 1}"),
    ],
)
def test_broken_bound_is_told(seen, text):
    assert row(**seen).broken() == [text]


def test_case_tells_unexpected_statuses_and_times_beyond_their_bound():
    found = Found()
    found.count([Answer(413, 0.001), Answer(413, 0.002), Answer(None, 9.0)], 413)
    found.bound("413 after", 0.002, 0.005)
    found.bound("DELETE", 1.25, 0.1)
    assert found.statuses == {413: 2, None: 1}
    assert found.notes == ["413 after 2.0 ms", "DELETE 1.2 s"]
    assert found.broken == ["answered {None: 1}", "DELETE 1.2 s > 100.0 ms"]


def test_throughput_counts_the_time_that_was_waited_for_the_last_answer():
    loads = [Load([0.001, 0.002, 4.0], in_time=2, cpu=0.1), Load([0.003], in_time=1, cpu=0.1)]
    assert summarize(loads, 5.0) == Readers(rate=0.8, p50=3.0, p99=4000.0, longest=4000.0)


def test_readers_that_got_no_answer_waited_for_all_the_time():
    assert summarize([], 60.0).p99 == 60_000


def test_parts_of_a_probe_are_merged():
    parts = [Health(0.01, 0.2, Counter({200: 1})), Health(0.03, 0.1, Counter({200: 2, None: 1}))]
    assert merge(parts) == Health(0.03, 0.2, Counter({200: 3, None: 1}))


def test_table_has_a_cell_for_each_column():
    head, rule, line, *_ = table([row()], {}).splitlines()
    assert head.count("|") == rule.count("|") == line.count("|") == len(COLUMNS) + 1
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["logins", "1,000", "50%", "2.0", "50.0", "5.0", "60", "50", "3", "4", "", "99%", "25%", "10%"]


def test_case_without_readers_stands_below_the_table():
    alone = Found(Counter({413: 60}), ["413 after 2.0 ms in the median"])
    assert table([row()], {"single_bodies": alone}).endswith(
        "* single_bodies: 413 × 60; 413 after 2.0 ms in the median"
    )


def test_body_of_the_case_is_the_longest_that_any_endpoint_takes():
    assert 1024 * 1024 - 20 < len(LARGE_BODY) <= 1024 * 1024


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 2\r\nRetry-After: 1\r\n\r\n{}", 413),
        (b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\n\r\n{}", None),
        (b"", None),
    ],
)
def test_client_reads_an_answer_that_comes_before_it_sent_everything(sent, status):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await writer.drain()
        writer.close()

    async def asked():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await ask(port, "POST", "/payments", {}, LARGE_BODY, address="127.0.0.2")

    answer = asyncio.run(asked())
    assert answer.status == status
    if status:
        assert answer.body == b"{}"
        assert answer.headers["retry-after"] == "1"


def test_request_names_its_host_and_length():
    assert wire(1, "POST", "/", {"A": "b"}, b"{}") == (
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\nA: b\r\nContent-Length: 2\r\n\r\n{}"
    )
