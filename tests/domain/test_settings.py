"""The one table of settings: nothing is read that it does not know (documentation drift)."""

import re
from pathlib import Path

import canon_hermes_plugin
import pytest
from canon_hermes_plugin.domain import settings
from canon_hermes_plugin.domain.media.policy import IMAGE_DELIVERY, VISUAL_DELIVERY
from canon_hermes_plugin.domain.verbosity import TURN_VERBOSITY

ROOT = Path(__file__).resolve().parents[2]
NAMES = {setting.env for setting in settings.SETTINGS}
NOT_SETTINGS = {"CANON_HERMES_VALUE", "CANON_SANDBOX_MODEL_KEY"}


def sources():
    for package in canon_hermes_plugin.__path__:
        yield from Path(package).rglob("*.py")


def test_the_table_in_the_documentation_is_the_one_of_the_code():
    assert settings.documented() in (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_every_variable_the_code_mentions_is_in_the_table():
    mentioned = set()
    for path in sources():
        mentioned |= set(re.findall(r"\b((?:CANON|GATEWAY)_[A-Z]+(?:_[A-Z]+)*)\b", path.read_text(encoding="utf-8")))
    assert len(mentioned) > 15
    unknown = {name for name in mentioned if name not in NAMES | NOT_SETTINGS}
    assert unknown == set()


@pytest.mark.parametrize(
    ("choice", "setting"),
    [
        (TURN_VERBOSITY, settings.TURN_VERBOSITY),
        (IMAGE_DELIVERY, settings.IMAGE_DELIVERY),
        (VISUAL_DELIVERY, settings.VISUAL_DELIVERY),
    ],
)
def test_a_choice_and_its_row_agree(choice, setting):
    assert (choice.variable, (*choice.keys, choice.variable)) == (setting.env, setting.extras)
    assert choice.values[0] == setting.default
    assert all(value in f"{setting.meaning} {setting.default}" for value in choice.values)


def test_every_setting_is_documented_once_and_secrets_are_marked():
    assert len(NAMES) == len(settings.SETTINGS)
    assert all(setting.meaning for setting in settings.SETTINGS)
    assert {setting.env for setting in settings.SETTINGS if setting.secret} == {
        "CANON_API_KEY",
        "CANON_AGENTS_JSON_BOOTSTRAP",
    }
