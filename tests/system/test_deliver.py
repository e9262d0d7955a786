"""`manage.py deliver` beside the service."""

from tests.service import Service, wait_for


def find_deliverers(service: Service) -> list[int]:
    return [pid for pid, command in service.copy.processes().items() if "manage.py deliver" in command]


def test_deliverer_ends_with_the_service(service: Service) -> None:
    wait_for(lambda: find_deliverers(service))
    (pid,) = find_deliverers(service)
    other = Service(service.copy)
    wait_for(lambda: len(find_deliverers(service)) == 2)
    assert other.stop() == 0
    assert find_deliverers(service) == [pid]
