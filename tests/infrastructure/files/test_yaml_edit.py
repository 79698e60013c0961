"""Editing other people's YAML: one change, every other byte kept (field faults 38, 39, 40, 42, 43)."""

from pathlib import Path

import pytest
import yaml
from canon_hermes_plugin.infrastructure.files import yaml_edit
from canon_hermes_plugin.infrastructure.files.config_file import ConfigFile
from canon_hermes_plugin.infrastructure.files.yaml_edit import CannotEditError
from canon_hermes_plugin.infrastructure.files.yaml_nodes import BrokenYamlError, load
from canon_hermes_plugin.ports.errors import ConfigurationError
from hypothesis import given, settings
from hypothesis import strategies as st

STYLES = Path(__file__).parent / "config_styles"
NAMES = sorted(path.name.removesuffix(".before.yaml") for path in STYLES.glob("*.before.yaml"))


def enable(text):
    text = yaml_edit.add_item(text, ("plugins", "enabled"), "canon-hermes")
    text = yaml_edit.remove_item(text, ("plugins", "disabled"), "canon-hermes")
    return yaml_edit.set_value(text, ("platforms", "canon", "enabled"), True)


def wanted(data):
    """What the file must mean afterwards, written down without the editor."""
    data = data or {}
    plugins = data["plugins"] if isinstance(data.get("plugins"), dict) else {}
    platforms = data["platforms"] if isinstance(data.get("platforms"), dict) else {}
    canon = platforms["canon"] if isinstance(platforms.get("canon"), dict) else {}
    enabled = plugins["enabled"] if isinstance(plugins.get("enabled"), list) else []
    if "canon-hermes" not in enabled:
        is_sorted = all(isinstance(name, str) for name in enabled) and enabled == sorted(enabled)
        enabled = sorted([*enabled, "canon-hermes"]) if is_sorted else [*enabled, "canon-hermes"]
    plugins = {**plugins, "enabled": enabled}
    if isinstance(plugins.get("disabled"), list):
        plugins["disabled"] = [name for name in plugins["disabled"] if name != "canon-hermes"]
    return {**data, "plugins": plugins, "platforms": {**platforms, "canon": {**canon, "enabled": True}}}


def test_the_corpus_is_large_enough():
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_field_38_every_style_of_configuration_gets_exactly_its_golden_change(name):
    before = (STYLES / f"{name}.before.yaml").read_bytes().decode("utf-8")
    after = (STYLES / f"{name}.after.yaml").read_bytes().decode("utf-8")
    assert enable(before) == after
    assert enable(after) == after
    assert yaml.safe_load(after.removeprefix("\ufeff")) == wanted(yaml.safe_load(before.removeprefix("\ufeff")))


@pytest.mark.parametrize("name", NAMES)
def test_field_38_comments_survive_in_every_style(name):
    before = (STYLES / f"{name}.before.yaml").read_text(encoding="utf-8")
    gone = ("# was noisy", "# hm", "# off for now")  # they stood on the removed line itself
    comments = [line[line.index("#") :].rstrip() for line in before.splitlines() if "# " in line]
    after = (STYLES / f"{name}.after.yaml").read_text(encoding="utf-8")
    assert [comment for comment in comments if comment not in gone and comment not in after] == []


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\nplugins: [x\nb: 2\n", 3, 2),
        ("\ta: 1\n", 1, 1),
        ("a: 1\n  b: 2\n", 2, 4),
        ("a: !secret x\n", 1, 4),
        ("a: 1\n---\nb: 2\n", 2, 1),
        ("a: *nowhere\n", 1, 4),
        ("a: 'open\n", 2, 1),
        ("a: \x07\n", 1, 4),
        ("a: {b: 1\n", 2, 1),
    ],
)
def test_a_broken_file_is_refused_with_line_and_column(text, line, column):
    with pytest.raises(BrokenYamlError, match=f"line {line}, column {column}") as caught:
        enable(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text",
    [
        "- plugins\n",
        "just text\n",
        "plugins: &p\n  enabled: [a]\nother: *p\n",
        "x: &x [a]\nplugins:\n  enabled: *x\n  <<: {enabled: [2020-01-01]}\nplatforms: {canon: &c {a: 1}, b: *c}\n",
        "plugins: &p\n- a\nother: *p\n",
    ],
)
def test_a_change_that_would_touch_something_else_is_refused(text):
    with pytest.raises(CannotEditError):
        enable(text)


@pytest.mark.parametrize(
    "text", ["plugins:\n- memory\n- web\n", "plugins: [memory]\n", "plugins:\n  enabled: memory\n"]
)
def test_field_39_a_section_of_the_wrong_shape_becomes_valid_and_loses_no_word(text):
    after = enable(text)
    assert yaml.safe_load(after)["plugins"] == {"enabled": ["canon-hermes"]}
    assert "memory" in after


@pytest.mark.parametrize("indent", ["", "  ", "    "])
def test_field_42_lists_are_understood_at_every_indent(indent):
    text = f"plugins:\n  enabled:\n  {indent}- alpha\n  disabled:\n  {indent}- canon-hermes\n  {indent}- beta\nx: 1\n"
    assert enable(text) == (
        f"plugins:\n  enabled:\n  {indent}- alpha\n  {indent}- canon-hermes\n  disabled:\n  {indent}- beta\nx: 1\n"
        "platforms:\n  canon:\n    enabled: true\n"
    )


def test_field_40_the_name_is_never_appended_to_the_disabled_list():
    after = enable("plugins:\n  enabled:\n    - a\n  disabled:\n    - b\n")
    assert yaml.safe_load(after)["plugins"] == {"enabled": ["a", "canon-hermes"], "disabled": ["b"]}


def test_field_43_a_name_in_both_lists_leaves_the_disabled_one():
    after = enable("plugins:\n  enabled: [canon-hermes]\n  disabled: [canon-hermes]\n")
    assert yaml.safe_load(after)["plugins"] == {"enabled": ["canon-hermes"], "disabled": []}


@pytest.mark.parametrize(
    "text", ["a: yes\nb: 010\nc: ~\nd: [1, 'x']\na: no\n", "", "# c\n", "x: &x {a: 1}\ny: {<<: *x, n: N}\n"]
)
def test_the_file_means_to_us_what_it_means_to_the_host(text):
    assert load(text) == yaml.safe_load(text)


SCALARS = st.one_of(
    st.sampled_from(["canon-hermes", "alpha", "zeta", "yes", "1", "", "a b", "it's", '"q"', "# no", "é😀"]),
    st.integers(-5, 5),
    st.booleans(),
    st.none(),
)
LISTS = st.lists(SCALARS, max_size=4)
SECTIONS = st.one_of(
    SCALARS,
    LISTS,
    st.dictionaries(st.sampled_from(["enabled", "disabled", "entries", "x"]), st.one_of(SCALARS, LISTS), max_size=4),
)
CANON = st.dictionaries(st.sampled_from(["canon", "telegram"]), SECTIONS, max_size=2)
DOCUMENTS = st.dictionaries(
    st.sampled_from(["plugins", "platforms", "model", "z"]), st.one_of(SECTIONS, CANON), min_size=1, max_size=4
)


@settings(max_examples=150, deadline=None)
@given(
    data=DOCUMENTS,
    flow=st.sampled_from([None, True, False]),
    indent=st.sampled_from([2, 4]),
    comments=st.booleans(),
    width=st.sampled_from([20, 80]),
)
def test_any_dumped_configuration_is_changed_as_wanted_and_only_once(data, flow, indent, comments, width):
    text = yaml.safe_dump(
        data, default_flow_style=flow, indent=indent, width=width, allow_unicode=True, sort_keys=False
    )
    if comments and flow is False:
        text = "# top\n" + text + "# bottom\n"
    before = yaml.safe_load(text)
    after = enable(text)
    assert yaml.safe_load(after) == wanted(before)
    assert enable(after) == after
    if comments and flow is False:
        assert after.startswith("# top\n")
        assert "# bottom\n" in after


def test_a_file_changed_by_somebody_else_in_between_keeps_their_change(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("a: 1\n", encoding="utf-8")
    calls = []

    def change(text):
        calls.append(text)
        if len(calls) == 1:
            path.write_text("a: 1\nb: 2\n", encoding="utf-8")
        return f"{text}c: 3\n"

    assert ConfigFile(path).edit(change)
    assert path.read_text(encoding="utf-8") == "a: 1\nb: 2\nc: 3\n"


@pytest.mark.parametrize("raw", [b"a: \xff\n", b"a: [\n", b"- x\n"])
def test_a_broken_file_stays_byte_for_byte(tmp_path, raw):
    path = tmp_path / "config.yaml"
    path.write_bytes(raw)
    with pytest.raises(ConfigurationError, match=r"config\.yaml"):
        ConfigFile(path).edit(enable)
    assert path.read_bytes() == raw


def test_an_existing_file_keeps_its_mode_and_a_new_one_is_private(tmp_path):
    path = tmp_path / "config.yaml"
    ConfigFile(path).edit(enable)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("", encoding="utf-8")
    path.chmod(0o640)
    ConfigFile(path).edit(enable)
    assert path.stat().st_mode & 0o777 == 0o640
