"""A plain turn costs at most ten requests to Canon.

Not counted is what depends on time and not on the turn: the periodic signal poll, refreshed typing, and the second and
later previews of an answer that grows (at most four a second, turns H27).
"""

import pytest

pytestmark = pytest.mark.gateway
BUDGET = 10


@pytest.fixture(scope="module", params=[True, False], ids=["streaming", "whole"])
def gateway_options(request):
    return {"streaming": request.param}


@pytest.fixture(scope="module", autouse=True)
def _warm(chat, model):
    model.script("hello", ["Hello, Dana."])  # one frame: longer answers are previewed as often as the host shows frames
    chat.ask(chat.direct(), "the first turn of a process is special")


@pytest.mark.parametrize("kind", ["direct", "group"])
def test_a_plain_turn_makes_at_most_ten_requests(canon, chat, kind):
    conversation = chat.direct() if kind == "direct" else chat.group()
    before = len(canon.requests())
    chat.ask(conversation, "hello")
    chat.settled(conversation)
    canon.wait_for(lambda c: c.node(conversation) is None and not _typing(c, conversation), 15)
    made = [record for record in canon.requests()[before:] if _about(record, conversation)]
    counted = [_short(record) for record in made if record.route != "signal" and not _repeated(record, made)]
    assert len(counted) <= BUDGET, ", ".join(counted)


def _about(record, conversation):
    return conversation in record.path or (record.body or {}).get("conversationId") == conversation


def _typing(canon, conversation):
    states = [entry["typing"] for entry in canon.logs.typing if entry["conversationId"] == conversation]
    return bool(states and states[-1])


def _short(record):
    body = record.body or {}
    return f"{record.route} {body.get('state') or body.get('status') or body.get('typing', '')}".strip()


def _repeated(record, made):
    kind = _short(record)
    repeatable = kind in {"typing thinking", "streaming streaming"}
    return repeatable and any(other.number < record.number and _short(other) == kind for other in made)
