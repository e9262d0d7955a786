"""What the benchmarks print."""

import re

import pytest

from benchmarks import compare, growth
from benchmarks.measuring import Round

EVEN, LOPSIDED = 0.5, 0.9


def measured(system="product", *, case="get_user", users=10_000, rate=100.0, busiest=EVEN, p50=1.0):
    return Round(
        *(system, case, users, rate),
        p50=p50,
        p99=9.0,
        server=1.5,
        database=0.25,
        load=0.03,
        busiest=busiest,
        foreign=0.04,
        rss=300,
        pss=200,
    )


def rows(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def others():
    return [measured("stock", rate=50.0), measured("limit", rate=1000.0)]


def test_rates_stand_beside_those_of_the_stock_application_and_the_limit():
    product, stock, limit = rows(compare.table([measured(rate=100.0), *others()]))
    assert product[:5] == ["get_user", "product", "100", "2.00", "10%"]
    assert product[5:] == ["1.0", "9.0", "1.500", "0.250", "0.030", "300", "200", "1 of 1", "4%"]
    assert stock[:5] == ["get_user", "stock", "50", "1.00", "5%"]
    assert limit[:5] == ["get_user", "limit", "1,000", "20.00", "100%"]


@pytest.mark.parametrize(
    ("balances", "rate", "used"),
    [
        ((EVEN, EVEN, EVEN), "30", "3 of 3"),
        ((EVEN, EVEN, LOPSIDED), "25", "2 of 3"),
        ((LOPSIDED, LOPSIDED, LOPSIDED), "30", "3 of 3"),
    ],
)
def test_round_that_one_worker_bore_alone_counts_only_where_all_are_so(balances, rate, used):
    rounds = [measured(rate=rate, busiest=busiest) for rate, busiest in zip((20.0, 30.0, 99.0), balances, strict=True)]
    product = rows(compare.table([*rounds, *others()]))[0]
    assert (product[2], product[-2]) == (rate, used)


@pytest.mark.parametrize("sizes", [(10_000,), (10_000, 1_000_000)])
def test_growth_is_a_table_and_a_picture_with_a_line_for_each_case(sizes):
    rounds = [
        measured(case=case, users=users, p50=milliseconds)
        for users in sizes
        for milliseconds, case in enumerate(growth.CASES, 1)
    ]
    assert rows(growth.table(rounds))[1] == ["a page by cursor", *["2.00"] * len(sizes)]
    lines = re.findall('<polyline points="(.*?)"', growth.drawn(rounds))
    assert [len(line.split()) for line in lines] == [len(sizes)] * len(growth.CASES)
