"""A slash command of nobody, or of another plugin: exactly one answer, in a session at rest and in a busy one."""

from pathlib import Path

import pytest
from canon_hermes_plugin.infrastructure.sandbox.demos import CONTROL, install_demos
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewaySettings
from canon_hermes_plugin.infrastructure.sandbox.model import Gate
from canon_hermes_plugin.infrastructure.sandbox.session import Chat

pytestmark = pytest.mark.gateway

PLUGIN = """
def register(ctx):
    ctx.register_command("roll", lambda arguments: f"rolled {arguments}", "roll a die")
"""


@pytest.fixture(scope="module")
def chat(canon, model, tmp_path_factory):
    install_demos(model)
    options = {"config": {"plugins": {"enabled": ["canon-hermes", "dice"]}}}
    gateway = Gateway(GatewaySettings(canon.environment(), model.url, **options), root=tmp_path_factory.mktemp("dice"))
    dice: Path = gateway.home / "plugins" / "dice"
    dice.mkdir(parents=True)
    (dice / "plugin.yaml").write_text("name: dice\n", encoding="utf-8")
    (dice / "__init__.py").write_text(PLUGIN, encoding="utf-8")
    with gateway:
        running = Chat(canon, gateway)
        running.wait_connected()
        yield running


def answers(canon, conversation):
    return [message.text for message in canon.finals(conversation)]


COMMANDS = pytest.mark.parametrize(("command", "answer"), [("/zzz", "Unknown command `/zzz`"), ("/roll 6", "rolled 6")])


@COMMANDS
def test_a_command_at_rest_has_one_answer(chat, canon, model, command, answer):
    conversation = chat.direct()
    chat.ask(conversation, command)
    chat.ask(conversation, "hello afterwards")
    first, second = answers(canon, conversation)
    assert first.startswith(answer)
    assert "hello afterwards" in second
    assert command not in model.user_texts()


@COMMANDS
def test_a_command_in_a_busy_session_waits_for_its_one_answer_and_interrupts_nobody(
    chat, canon, model, command, answer
):
    conversation, gate = chat.direct(), Gate()
    model.script(f"slowly {command}", ["I worked ", gate, "to the end."])
    canon.say(conversation, "user_dana", f"slowly {command}")
    gate.wait_reached()
    canon.say(conversation, "user_dana", command)
    canon.say(conversation, "user_dana", "hello afterwards")
    gate.open()
    chat.wait(lambda c: len(c.finals(conversation)) >= 3, 60, "no three answers")
    first, second, third = answers(canon, conversation)
    assert first == "I worked to the end."
    assert second.startswith(answer)
    assert "hello afterwards" in third
    assert command not in model.user_texts()


def test_an_unknown_command_does_not_cost_the_card_that_waits(chat, canon):
    conversation = chat.direct()
    canon.say(conversation, "user_dana", "demo card")
    (card,) = chat.wait(lambda c: c.interactions.waiting(conversation), 60, f"no {CONTROL}")
    canon.say(conversation, "user_dana", "/zzz")
    chat.wait(lambda c: len(c.messages(conversation, own=False)) == 2, 10, "not said")
    canon.interactions.answer(card.id, actionId="file", values={})
    chat.wait(lambda c: len(c.finals(conversation)) >= 2, 60, "no two answers")
    chat.ask(conversation, "hello afterwards")
    first, second, _third = answers(canon, conversation)
    assert card.status == "answered"
    assert first == 'You picked "file" on the card.'
    assert second.startswith("Unknown command `/zzz`")
