"""The calls of the guide in the languages that it shows, as text; that they do what they show is run in tests/docs."""

import pytest

from config.site.examples import Exchange, parse_command, read_session, write_javascript, write_python, write_settings


def exchange(command: str, printed: str = "{}\n") -> Exchange:
    return Exchange(command, printed)


def test_session_is_read_by_commands():
    first, second = read_session("$ curl one\n{}\n$ .venv/bin/python two\ntext\nmore\n")
    assert (first.command, first.printed, first.is_call) == ("curl one", "{}\n", True)
    assert (second.command, second.printed, second.is_call) == (".venv/bin/python two", "text\nmore\n", False)


@pytest.mark.parametrize(
    ("command", "python", "javascript"),
    [
        (
            'curl -H "X-API-Key: $KEY" "$API/users?limit=2"',
            'answer = httpx.get(f"{API}/users?limit=2", headers={"X-API-Key": KEY})\n',
            """const answer = await fetch(`${API}/users?limit=2`, {
  headers: { "X-API-Key": KEY },
})
""",
        ),
        (
            """curl -X PATCH -H "Content-Type: application/json" -d '{"a": null, "b": [true, 1.5, "is {x}"]}' $API""",
            'answer = httpx.patch(API, json={"a": None, "b": [True, 1.5, "is {x}"]})\n',
            """const answer = await fetch(API, {
  method: "PATCH",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ a: null, b: [true, 1.5, "is {x}"] }),
})
""",
        ),
        (
            'curl -d "a=b c&d=$SECRET" $API',
            'answer = httpx.post(API, data={"a": "b c", "d": SECRET})\n',
            """const answer = await fetch(API, {
  method: "POST",
  body: new URLSearchParams({ a: "b c", d: SECRET }),
})
""",
        ),
        (
            'curl -u "me@example.com:$PASSWORD" $API',
            'answer = httpx.get(API, auth=("me@example.com", PASSWORD))\n',
            """const answer = await fetch(API, {
  headers: { Authorization: "Basic " + btoa(`me@example.com:${PASSWORD}`) },
})
""",
        ),
        (
            """curl -H "Content-Type: application/json" -d '{"item": }' $API""",
            """answer = httpx.post(
    API,
    headers={"Content-Type": "application/json"},
    content="{\\"item\\": }",
)
""",
            """const answer = await fetch(API, {
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: "{\\"item\\": }",
})
""",
        ),
    ],
)
def test_command_is_the_same_call_in_each_language(command, python, javascript):
    assert write_python(exchange(command)).partition("print(")[0] == python
    assert write_javascript(exchange(command)).partition("console.")[0] == javascript


def test_what_is_shown_of_an_answer_is_printed():
    shown = exchange("curl -i $API", "HTTP/1.1 200 OK\nETag: …\n\n{}\n")
    assert write_python(shown).splitlines()[1:] == [
        'print(answer.status_code, answer.headers["ETag"])',
        "print(answer.json())",
    ]
    assert write_javascript(shown).splitlines()[1:] == [
        'console.log(answer.status, answer.headers.get("ETag"))',
        "console.log(await answer.json())",
    ]
    assert "json()" not in write_python(exchange("curl -i $API", "HTTP/1.1 204 No Content\n"))


def test_json_without_its_type_stays_a_text():
    call = parse_command("""curl -d '{"a": 1}' $API""")
    assert (call.method, call.body, call.form) == ("POST", '{"a": 1}', None)


def test_variables_are_set_in_each_language():
    assert write_settings("export ORIGIN=http://one\nexport API=$ORIGIN/api\n") == {
        "curl": "export ORIGIN=http://one\nexport API=$ORIGIN/api\n",
        "python": 'import httpx\n\nORIGIN = "http://one"\nAPI = f"{ORIGIN}/api"\n',
        "javascript": 'const ORIGIN = "http://one"\nconst API = `${ORIGIN}/api`\n',
    }
    assert write_settings("make run\n") is None
