"""The skill and the reference page say what the validator enforces (cards §7)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import canon_hermes_plugin.cards as cards_module
import pytest
from canon_hermes_plugin.cards import RUNTIME_CARD_LIMITS, interactive, validate_card
from canon_hermes_plugin.domain.cards.examples import EXAMPLES
from canon_hermes_plugin.domain.cards.schema import BLOCK_KINDS, FIELD_TYPE, ID_PATTERN, TONE
from canon_hermes_plugin.domain.cards.teach import BEGIN, END, reference_text, skill_text, with_reference

SKILL = Path(cards_module.__file__).parent / "skills" / "rich-cards" / "SKILL.md"
PAGE = Path(__file__).parents[3] / "docs" / "cards.md"


def test_the_packaged_skill_is_the_generated_one():
    hint = "run: canon-hermes card docs skill --write entrypoints/skills/rich-cards/SKILL.md"
    assert SKILL.read_text(encoding="utf-8") == skill_text(), hint


def test_the_documentation_holds_the_generated_section():
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert with_reference(page) == page, "run: canon-hermes card docs reference --write docs/cards.md"


def test_rewriting_the_section_keeps_what_is_around_it():
    page = f"# Cards\n\nBefore.\n\n{BEGIN}\nstale line\n{END}\n\nAfter.\n"
    once = with_reference(page)
    assert once.startswith("# Cards\n\nBefore.\n\n")
    assert once.endswith(f"{END}\n\nAfter.\n")
    assert "stale line" not in once
    assert with_reference(once) == once
    assert with_reference("# Cards\n").startswith(f"# Cards\n\n{BEGIN}")


def test_the_skill_has_the_front_matter_of_a_read_only_skill():
    _, front, _ = skill_text().split("---\n", 2)
    lines = dict(line.split(": ", 1) for line in front.splitlines())
    assert lines["name"] == "rich-cards"
    assert 20 < len(lines["description"]) < 200
    assert lines["allowed-tools"] == "[canon_runtime_control]"


def test_the_skill_names_the_whole_vocabulary():
    text = skill_text()
    for word in (*BLOCK_KINDS, *FIELD_TYPE.members, *TONE.members, "schema", "title", "fallbackText", "blocks"):
        assert f"`{word}`" in text
    assert f"`^{ID_PATTERN}$`" in text
    assert len(BLOCK_KINDS) == 9
    assert len(FIELD_TYPE.members) == 10
    assert len(TONE.members) == 8


@pytest.mark.parametrize(
    "statement",
    [
        'action: "send_card"', 'action: "request_card"', 'status: "submitted"', "`actionId`", "`cancelled`",
        "`timeout`", "nothing was authorised", "`target`", "`responseUserId`", "`runtimeId`", "`turnId`",
        "the same payload will fail", "`values`", "`answers`", "must validate it again", "`image/*`",
        "`application/pdf`", "No upload means no preview", "nothing secret", "no hidden state",
        "never use a command-line tool", "plain text",
    ],
)  # fmt: skip
def test_the_skill_teaches(statement):
    assert statement in " ".join(skill_text().split())


def test_the_limits_in_the_skill_are_those_of_the_table():
    limits = re.search(r"## Limits\n(.*?)\n## ", skill_text(), re.DOTALL)
    assert limits
    quoted = {int(number) for number in re.findall(r"\d+", limits[1])}
    assert quoted >= {*RUNTIME_CARD_LIMITS.values(), 32, 120, 500}


def test_the_skill_holds_one_card_and_one_call_and_both_are_valid():
    display, call = (json.loads(block) for block in re.findall(r"```json\n(.*?)\n```", skill_text(), re.DOTALL))
    assert validate_card(display) == {"ok": True, "errors": []}
    assert not interactive(display)
    assert call["action"] == "request_card"
    assert isinstance(call["timeoutSeconds"], int)
    assert validate_card(call["card"]) == {"ok": True, "errors": []}
    assert interactive(call["card"])
    actions = next(block["actions"] for block in call["card"]["blocks"] if block["kind"] == "actions")
    assert any(action.get("fields") for action in actions)


def test_the_reference_quotes_every_limit_of_the_table():
    for name, limit in RUNTIME_CARD_LIMITS.items():
        assert f"| `{name}` | {limit} |" in reference_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_a_valid_starting_point(name):
    assert validate_card(EXAMPLES[name].card) == {"ok": True, "errors": []}


def test_the_examples_show_every_block_kind_and_field_type():
    text = json.dumps([example.card for example in EXAMPLES.values()])
    for kind in BLOCK_KINDS:
        assert f'"kind": "{kind}"' in text
    for kind in FIELD_TYPE.members:
        assert f'"type": "{kind}"' in text
