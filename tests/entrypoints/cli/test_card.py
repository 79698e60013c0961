"""``canon-hermes card``: verdicts with lines and exit status, examples, the plain drawing, the generated texts."""

import json
import os
import subprocess
import sys

import pytest
from canon_hermes_plugin.cards import validate_card
from canon_hermes_plugin.domain.cards.examples import EXAMPLES
from canon_hermes_plugin.domain.cards.teach import reference_text, skill_text

GOOD = {
    "schema": "canon.card.v1",
    "title": "Berth 4",
    "fallbackText": "f",
    "blocks": [{"kind": "list", "items": [{"label": "Fuel", "status": "done"}]}],
}


@pytest.fixture
def file(tmp_path):
    def write(card):
        path = tmp_path / "card.json"
        path.write_text(card if isinstance(card, str) else json.dumps(card, indent=1), encoding="utf-8")
        return str(path)

    return write


def test_a_valid_card_exits_with_zero(cli, file):
    result = cli("card", "check", file(GOOD))
    assert (result.exit_code, "valid, for display" in result.output) == (0, True)
    result = cli("card", "check", file(EXAMPLES["decision"].card))
    assert (result.exit_code, "valid, interactive" in result.output) == (0, True)


def test_errors_come_with_path_and_line_and_exit_status_one(cli, file):
    path = file({**GOOD, "zeta": 1, "title": ""})
    result = cli("card", "check", path)
    lines = result.output.splitlines()
    assert result.exit_code == 1
    assert lines[0].startswith(f'{path}:16: card must not have the key "zeta"')
    assert lines[1].startswith(f"{path}:3: card.title must be ")
    assert "2 errors" in lines[2]


def test_the_json_verdict_is_complete(cli, file):
    result = cli("card", "check", "--json", file({**GOOD, "title": None}))
    assert result.exit_code == 1
    verdict = json.loads(result.output)
    assert verdict["ok"] is False
    (error,) = verdict["errors"]
    assert (error["path"], error["line"]) == ("card.title", 3)
    assert "non-blank string" in error["message"]
    result = cli("card", "check", file(EXAMPLES["form"].card), "--json")
    assert (result.exit_code, json.loads(result.output)) == (0, {"ok": True, "interactive": True, "errors": []})


def test_standard_input_is_read_for_a_dash(cli):
    assert cli("card", "check", "-", input=json.dumps(GOOD)).exit_code == 0
    result = cli("card", "check", "-", input="{\n,}")
    assert result.exit_code == 1
    assert "standard input:2: card must be JSON" in result.output


def test_a_file_that_is_not_there_is_a_usage_error(cli):
    assert cli("card", "check", "missing.json").exit_code == 2


def test_a_huge_file_is_refused_unread(cli, file):
    result = cli("card", "check", file('"' + "x" * (4 * 1024 * 1024) + '"'))
    assert result.exit_code == 1
    assert "exceeds" in result.output


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_printed_valid_and_can_be_shown(cli, name):
    printed = cli("card", "example", name).output
    assert validate_card(json.loads(printed)) == {"ok": True, "errors": []}
    shown = cli("card", "show", "-", input=printed)
    assert shown.exit_code == 0
    assert shown.output.startswith(EXAMPLES[name].card["title"])


def test_examples_are_listed_without_a_name(cli):
    assert [line.split()[0] for line in cli("card", "example").output.splitlines()] == list(EXAMPLES)


def test_an_invalid_card_is_explained_instead_of_shown(cli, file):
    result = cli("card", "show", file({**GOOD, "tone": "loud"}))
    assert result.exit_code == 1
    assert "card.tone must be one of" in result.output


def test_control_characters_of_a_card_never_reach_the_terminal(cli, file):
    evil = "\x1b]0;owned\x07\x9b31m\u202eoff\r"
    shown = cli("card", "show", file({**GOOD, "title": f"T {evil}"}))
    assert shown.exit_code == 0
    assert "\\x1b]0;owned" in shown.output
    checked = cli("card", "check", file({**GOOD, evil: 1}))
    for output in (shown.output, checked.output):
        assert not set(output) & set("\x1b\x07\x9b\u202e\r")


def test_field_50_a_stream_without_the_signs_gets_ascii(file):
    path = file({**GOOD, "title": "Größe ✓"})
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "canon_hermes_plugin.cli", "card"]
    for task in ("show", "check"):
        done = subprocess.run([*command, task, path], env=environment, capture_output=True, check=True, timeout=60)
        assert done.stdout.isascii()
        assert not done.stderr
        if task == "show":
            assert done.stdout.splitlines()[0] == b"Gr\\xf6\\xdfe \\u2713"
            assert b"[x] Fuel" in done.stdout


def test_the_generated_texts_are_printed_and_written(cli, tmp_path):
    assert cli("card", "docs", "skill").output == skill_text()
    assert cli("card", "docs", "reference").output == reference_text()
    skill, page = tmp_path / "SKILL.md", tmp_path / "page.md"
    page.write_text("# Mine\n", encoding="utf-8")
    assert cli("card", "docs", "skill", "--write", str(skill)).exit_code == 0
    assert cli("card", "docs", "reference", "--write", str(page)).exit_code == 0
    assert skill.read_text(encoding="utf-8") == skill_text()
    assert page.read_text(encoding="utf-8") == f"# Mine\n\n{reference_text()}"


def test_checking_a_card_loads_neither_host_nor_container(file):
    script = (
        "import sys; sys.argv = ['x', 'card', 'check', sys.argv[1]]\n"
        "from canon_hermes_plugin.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({'hermes_cli', 'gateway', 'httpx', 'dependency_injector'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, file(GOOD)], capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"
