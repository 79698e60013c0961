"""The pure rules: responders, sudo, limits, clarify words, exec choices, reach_out (interactions §4, §7, §8, §17)."""

from __future__ import annotations

import math

import pytest
from canon_hermes_plugin.domain.interactions import clarify, exec_approvals, limits, reach_out, responders
from canon_hermes_plugin.domain.interactions.schema import ACTIONS, DESCRIPTION, PARAMETERS
from canon_hermes_plugin.domain.interactions.sudo import is_sudo_command
from canon_hermes_plugin.ports.errors import MalformedResponseError
from canon_hermes_plugin.ports.host import SessionSnapshot
from hypothesis import given
from hypothesis import strategies as st

# --- sudo (D19) -----------------------------------------------------------------------------------------------------

SUDO = [
    "sudo ls",
    "/usr/bin/sudo ls",
    "SUDO ls",
    "echo sudo",
    "env sudo -n x",
    "x;sudo y",
    "x|sudo",
    "(sudo y)",
    "./sudo",
    "$(sudo id)",
    "`sudo id`",
    "bash -c 'sudo ls'",
    '"sudo" ls',
    "'sudo' ls",
    "sudo>f",
    "sudo\\\nls",
    "sudo<f",
    "{ sudo; }",
    "su\\do ls",
    "s'u'do ls",
    'su""do ls',
    "su\\\ndo ls",
    "sudo${IFS}ls",
    "{sudo,ls}",
    "\\sudo ls",
    "x&&sudo\ty",
    "sudo",
]
NOT_SUDO = [
    "pseudo ls",
    "sudoedit /etc/x",
    "my-sudo x",
    "sudo.exe x",
    "su -c ls",
    "doas ls",
    "",
    "ls sudoers",
    "sudo_x",
]


@pytest.mark.parametrize("command", SUDO)
def test_d19_a_command_that_would_run_sudo_is_the_owners(command):
    assert is_sudo_command(command)
    assert responders.exec_responder(command, "u_1") is None


@pytest.mark.parametrize("command", NOT_SUDO)
def test_other_words_are_not_sudo(command):
    assert not is_sudo_command(command)
    assert responders.exec_responder(command, "u_1") == "u_1"


@given(st.text(alphabet=" ;|&()<>'\"\\\n", min_size=1, max_size=3), st.sampled_from(["sudo", "Sudo", "/bin/sudo"]))
def test_d19_no_shell_punctuation_hides_sudo(around, word):
    assert is_sudo_command(f"x {around}{word}{around}ls")


# --- who may answer (§2, §8) ----------------------------------------------------------------------------------------


def test_only_a_canon_turn_names_a_human():
    assert responders.trusted_user(SessionSnapshot("canon", "cv", "u_1")) == "u_1"
    assert responders.trusted_user(SessionSnapshot("telegram", "cv", "u_1")) is None
    assert responders.trusted_user(SessionSnapshot("canon", "cv", None)) is None
    assert responders.active_conversation(SessionSnapshot("telegram", "cv")) is None


@pytest.mark.parametrize(
    ("captured", "trusted", "expected"),
    [
        ("a", "b", ("a", True)),
        ("a", "a", ("a", False)),
        (None, "b", ("b", False)),
        ("a", None, ("a", False)),
        (None, None, (None, False)),
    ],
)
def test_what_was_captured_when_the_turn_began_wins(captured, trusted, expected):
    assert responders.responder_of(captured, trusted) == expected


@pytest.mark.parametrize(
    ("kind", "sensitive", "questions", "expected"),
    [
        ("secret", None, None, True),
        (" SUDO ", None, None, True),
        ("clarify", True, None, True),
        ("clarify", None, [{"isSecret": True}], True),
        ("clarify", None, [{"isSecret": 1}], False),
        ("clarify", "true", None, False),
        ("clarify", False, [{}], False),
        (None, None, "x", False),
    ],
)
def test_secrets_and_sudo_inputs_are_the_owners(kind, sensitive, questions, expected):
    assert responders.is_owner_only(kind, sensitive, questions) is expected


@pytest.mark.parametrize(
    ("responder", "owner", "denied", "expected"),
    [
        (None, None, False, True),
        ("o", "o", False, True),
        ("u", "o", False, False),
        ("u", None, False, False),
        (None, "o", True, False),
        ("o", "o", True, False),
    ],
)
def test_a_session_rule_is_the_owners_alone(responder, owner, denied, expected):
    assert responders.may_offer_session_rule(responder, owner, smart_denied=denied) is expected


@pytest.mark.parametrize(
    ("expected", "by", "stranger"),
    [
        ("u", "u", False),
        ("u", " u ", False),
        ("u", "v", True),
        ("u", None, False),
        ("u", "", False),
        ("u", ["u"], True),
        (None, "v", False),
    ],
)
def test_d20_an_answer_of_somebody_else_is_recognised(expected, by, stranger):
    assert responders.is_stranger(expected, {"respondedBy": by}) is stranger


# --- limits (§4.1, §4.2, §7.2) --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 300),
        ("45", 45),
        ("3.7", 300),
        (1, 5),
        (999_999, 1800),
        (True, 5),
        (False, 5),
        ("abc", 300),
        (math.nan, 300),
        (math.inf, 1800),
        (-math.inf, 5),
        (45.9, 45),
        ([], 300),
        ("9" * 5000, 300),
        (10**400, 1800),
    ],
)
def test_d18_timeouts_of_any_shape_are_bounded(value, seconds):
    assert limits.coerce_timeout(value) == seconds


@pytest.mark.parametrize(("value", "seconds"), [(None, 259_200), (999_999_999, 259_200), (0, 5), (math.inf, 259_200)])
def test_detached_timeouts_default_to_72_hours(value, seconds):
    assert limits.detached_timeout(value) == seconds


@pytest.mark.parametrize(("value", "seconds"), [("abc", 300), ("99999", 1800), ("-3", 5), (None, 300), (" ", 300)])
def test_settings_of_the_host_environment_are_bounded(value, seconds):
    assert limits.setting_timeout(value) == seconds


def test_d2_the_hosts_own_wait_caps_an_exec_approval():
    assert limits.capped_by_host(300, 60) == 60
    assert limits.capped_by_host(300, None) == 300
    assert limits.capped_by_host(300, 0) == 300
    assert limits.capped_by_host(300, math.inf) == 300


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("canon:cv", "cv"),
        (" cv ", "cv"),
        ("canon: cv ", "cv"),
        ("CANON:cv", "CANON:cv"),
        ("", "active"),
        (None, "active"),
    ],
)
def test_a_target_names_the_conversation_else_the_active_one_counts(target, expected):
    assert limits.resolve_conversation(target, "active", "home") == expected


def test_outside_a_conversation_home_counts_else_the_model_is_told_what_to_do():
    assert limits.resolve_conversation(None, None, " home ") == "home"
    with pytest.raises(ValueError, match="target"):
        limits.resolve_conversation(None, None, " ")
    with pytest.raises(ValueError, match="conversation id"):
        limits.resolve_conversation("canon:", "active", "home")


# --- clarify (§7.3) -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"value": " a "}, " a "),
        ({"value": "", "answers": {"q": {"answers": ["x", " y "]}}}, "x, y"),
        ({"answers": {"q1": ["a"], "q2": "b", "q3": []}}, "q1: a\nq2: b"),
        ({"answers": {"q1": {"answers": ["only"]}, "q2": {"answers": []}}}, "q1: only"),
        ({"choice": {"label": " l "}}, "l"),
        ({"answers": {"q": {"answers": []}}, "choice": {"value": "z"}}, "z"),
        ({"value": "", "choice": {"value": "v"}}, ""),
        ({"value": 5}, ""),
        ({}, ""),
        ({"choice": ["x"]}, ""),
        ({"answers": {"q": {"answers": {"x": 1}}}}, ""),
        ({"value": " ", "answers": {"q": []}}, " "),
    ],
    ids=str,
)
def test_the_persons_words_are_found_wherever_the_answer_has_them(answer, text):
    assert clarify.answer_text(answer) == text


def test_choices_of_any_shape_become_labels_and_values():
    given_choices = [{"label": "A", "value": "1"}, {"text": "B"}, {"value": "C"}, " d ", "", {}, 5]
    made = clarify.normalise_choices(given_choices)
    assert [(item["label"], item["value"]) for item in made] == [
        ("A", "1"),
        ("B", "B"),
        ("C", "C"),
        ("d", "d"),
        ("5", "5"),
    ]
    assert clarify.normalise_choices([""] * 12 + ["late"]) == []
    assert clarify.normalise_choices("text") == []
    assert clarify.normalise_choices(["l" * 500]) == [{"label": "l" * 160, "value": "l" * 400}]


# --- exec approvals (§7.4) ------------------------------------------------------------------------------------------

ALLOW = {"status": "allow", "respondedBy": "u"}
RULE = {**ALLOW, "sessionRule": {"type": "approve-all"}}


@pytest.mark.parametrize(
    ("answer", "rule", "choice"),
    [
        (ALLOW, True, "once"),
        (RULE, True, "session"),
        (RULE, False, "once"),
        ({**ALLOW, "sessionRule": {"type": "approve-tool"}}, True, "session"),
        ({**ALLOW, "sessionRule": {"type": "other"}}, True, "once"),
        ({**ALLOW, "sessionRule": {"type": ["approve-all"]}}, True, "once"),
        ({**ALLOW, "sessionRule": "approve-all"}, True, "once"),
        ({"status": "allow"}, False, "once"),
        ({**ALLOW, "respondedBy": "stranger"}, True, "deny"),
        ({"status": "deny"}, True, "deny"),
        ({"status": "timeout"}, True, "deny"),
        ({"status": "ALLOW"}, True, "deny"),
        ({"status": "always"}, True, "deny"),
        ({}, True, "deny"),
        (None, True, "deny"),
    ],
    ids=str,
)
def test_d20_everything_but_an_attributable_allow_is_a_denial(answer, rule, choice):
    assert exec_approvals.choice_of(answer, responder="u", session_rule=rule) == choice


@pytest.mark.parametrize(
    ("ours", "echo", "rule"),
    [
        (True, True, True),
        (True, False, False),
        (True, None, True),
        (True, "yes", True),
        (False, True, False),
    ],
)
def test_a_session_rule_needs_both_sides(ours, echo, rule):
    assert exec_approvals.rule_in_force(ours, {"allowSessionRule": echo}) is rule


# --- reach_out (§5.5) -----------------------------------------------------------------------------------------------


def wish(**fields):
    return reach_out.build_reach_out(
        **{"target_user_id": "u_1", "text": None, "request_message": None, **fields}  # type: ignore[arg-type]
    )


def test_the_note_defaults_to_the_text_and_is_cut():
    assert wish(text=" hi ").value() == {"text": "hi", "requestMessage": "hi"}
    assert wish(text="hi", request_message=" note ").value() == {"text": "hi", "requestMessage": "note"}
    assert wish().value() == {}
    assert wish(text=5, request_message=" ").value() == {}
    cut = wish(text="é" * 501).value()["requestMessage"]
    assert cut == "é" * 497 + "..."
    assert wish(text="é" * 500).value()["requestMessage"] == "é" * 500
    with pytest.raises(ValueError, match="targetUserId"):
        wish(target_user_id=" ")


MESSAGED = {"status": "messaged", "conversationId": "cv", "messageId": "m", "created": True, "reused": False, "x": 1}


@pytest.mark.parametrize(
    ("text", "result", "told"),
    [
        ("hi", MESSAGED, MESSAGED),
        (None, MESSAGED, {**MESSAGED, "status": "opened"}),
        ("hi", {"status": "requested", "requestId": None}, None),
        ("hi", {"status": "pending", "requestId": "r", "deferredIntentId": None}, None),
        ("hi", {"status": "setup_required", "reason": "setup-required"}, None),
        ("hi", {"status": "no_session", "reason": "x"}, None),
        ("hi", {"status": "blocked", "reason": "muted"}, None),
        ("hi", {"status": "unavailable", "reason": "gone"}, None),
    ],
    ids=str,
)
def test_known_results_are_told_as_they_are(text, result, told):
    assert reach_out.read_result(wish(text=text), result) == (told or result)


@pytest.mark.parametrize("status", ["blocked", "unavailable"])
def test_owner_only_is_a_final_denial(status):
    told = reach_out.read_result(wish(text="hi"), {"status": status, "reason": "owner-only", "secret": "x"})
    assert (told["status"], told["reason"]) == ("denied", "owner-only")
    assert "final" in told["note"]
    assert "secret" not in told


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"status": "sent"},
        {"status": ["messaged"]},
        {"status": "messaged"},
        {"status": "messaged", "conversationId": 5},
        {**MESSAGED, "messageId": None},
        {**MESSAGED, "created": "yes"},
        {"status": "requested"},
        {"status": "pending", "requestId": 5},
        {"status": "requested", "requestId": None, "deferredIntentId": 5},
        {"status": "blocked"},
        {"status": "unavailable", "reason": None},
    ],
    ids=str,
)
def test_a_malformed_result_fails_closed(result):
    with pytest.raises(MalformedResponseError):
        reach_out.read_result(wish(text="hi"), result)


# --- schema (§3) ----------------------------------------------------------------------------------------------------


_NAMES = (
    *("action", "target", "targetUserId", "text", "requestMessage", "question", "options", "context", "approvalId"),
    *("reason", "card", "cardId", "inputId", "kind", "title", "prompt", "choices", "questions", "responseUserId"),
    *("runtimeId", "turnId", "timeoutSeconds", "sensitive"),
)


def test_the_schema_offers_exactly_the_contracts_parameters():
    assert PARAMETERS["properties"]["action"]["enum"] == list(ACTIONS)
    assert PARAMETERS["required"] == ["action"]
    assert "type" not in PARAMETERS["properties"]["context"]
    assert sorted(PARAMETERS["properties"]) == sorted(_NAMES)


@pytest.mark.parametrize(
    "fact",
    [
        "reach_out",
        "attachments",
        "setup_required",
        "owner-only",
        "final",
        "detached",
        "pending",
        "must not be waited",
        "check_approval",
        "not a denial",
        "no_reply",
        "ignored",
        "private",
        "dropped",
    ],
)
def test_the_description_tells_the_model_what_it_must_know(fact):
    assert fact in DESCRIPTION
