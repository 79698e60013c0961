"""A plain turn costs at most ten requests to Canon."""

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
    counted = [record.route for record in made if not _repeats_typing(record, made)]
    assert len(counted) <= BUDGET, counted


def _about(record, conversation):
    return conversation in record.path or (record.body or {}).get("conversationId") == conversation


def _typing(canon, conversation):
    states = [entry["typing"] for entry in canon.logs.typing if entry["conversationId"] == conversation]
    return bool(states and states[-1])


def _repeats_typing(record, made):
    """The host refreshes the indicator every two seconds: how often depends on the machine, not on the plugin."""
    earlier = [other for other in made if other.number < record.number and other.route == "typing"]
    return record.route == "typing" and bool(earlier) and earlier[-1].body == record.body
