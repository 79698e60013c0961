"""``canon-hermes install`` (interactions §12.1, D13)."""

import json
import os
import subprocess
import sys

import pytest
import yaml


def config(home):
    return yaml.safe_load((home / "config.yaml").read_text(encoding="utf-8"))


def files(home):
    return {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}


def test_a_fresh_home_gets_plugin_platform_and_access(cli, home):
    result = cli("install")
    assert result.exit_code == 0
    assert config(home) == {"plugins": {"enabled": ["canon-hermes"]}, "platforms": {"canon": {"enabled": True}}}
    assert (home / ".env").read_text(encoding="utf-8") == "CANON_ALLOW_ALL_USERS=true\n"
    assert "enabled now" in result.output
    assert "canon-hermes setup" in result.output


def test_a_second_run_changes_no_byte_and_says_so(cli, home):
    (home / "config.yaml").write_bytes(b"# mine\r\nplugins: {disabled: [canon-hermes]}\r\n")
    cli("install")
    before = files(home)
    result = cli("install")
    assert result.exit_code == 0
    assert files(home) == before
    assert "nothing to change" in result.output
    assert result.output.count("already") == 3


def test_d13_an_entry_in_disabled_is_removed(cli, home):
    (home / "config.yaml").write_text(
        "plugins: {enabled: [canon-hermes], disabled: [canon-hermes]}\n", encoding="utf-8"
    )
    assert "removed from plugins.disabled" in cli("install").output
    assert config(home)["plugins"] == {"enabled": ["canon-hermes"], "disabled": []}


def test_d13_members_that_are_no_text_are_tolerated(cli, home):
    (home / "config.yaml").write_text("plugins:\n  enabled: [zeta, 5]\n", encoding="utf-8")
    assert cli("install").exit_code == 0
    assert config(home)["plugins"]["enabled"] == ["zeta", 5, "canon-hermes"]


def test_a_member_for_which_the_host_drops_the_whole_list_is_refused(cli, home):
    (home / "config.yaml").write_text("plugins:\n  enabled: [zeta, [5]]\n", encoding="utf-8")
    before = files(home)
    result = cli("install")
    assert (result.exit_code, files(home)) == (1, before)
    assert "whole list" in result.stderr


@pytest.mark.parametrize("raw", [b"plugins: [a\nb: 1\n", b"\tx: 1\n", b"a: \xff\n", b"- a\n"])
def test_a_broken_config_is_refused_untouched(cli, home, raw):
    (home / "config.yaml").write_bytes(raw)
    result = cli("install")
    assert result.exit_code == 1
    assert files(home) == {"config.yaml": raw}
    assert "nothing was changed" in result.stderr
    if raw != b"- a\n":
        assert "line" in result.stderr
        assert "column" in result.stderr


@pytest.mark.parametrize("name", ["CANON_ALLOWED_USERS", "CANON_ALLOW_ALL_USERS"])
@pytest.mark.parametrize("place", ["environment", "file"])
def test_an_access_rule_that_exists_is_left_alone(cli, home, monkeypatch, name, place):
    if place == "environment":
        monkeypatch.setenv(name, "user_1")
    else:
        (home / ".env").write_text(f"export {name}='user_1'\n", encoding="utf-8")
    before = files(home).get(".env")
    assert "access: already configured" in cli("install").output
    assert files(home).get(".env") == before


def test_a_blank_access_rule_does_not_count(cli, home, monkeypatch):
    monkeypatch.setenv("CANON_ALLOWED_USERS", "  ")
    (home / ".env").write_text("CANON_ALLOW_ALL_USERS=\nX=1\n", encoding="utf-8")
    cli("install")
    assert (home / ".env").read_text(encoding="utf-8") == "CANON_ALLOW_ALL_USERS=true\nX=1\n"


def test_the_sticky_profile_of_the_host_is_the_one_installed(cli, home):
    (home / "profiles" / "work").mkdir(parents=True)
    (home / "active_profile").write_text("work\n", encoding="utf-8")
    assert cli("install").exit_code == 0
    assert not (home / "config.yaml").exists()
    assert config(home / "profiles" / "work")["platforms"]["canon"]["enabled"] is True


def test_a_missing_sticky_profile_is_refused(cli, home):
    (home / "active_profile").write_text("gone\n", encoding="utf-8")
    result = cli("install")
    assert result.exit_code == 1
    assert "'gone' does not exist" in result.stderr


def test_a_managed_host_is_refused(cli, home, monkeypatch):
    monkeypatch.setenv("HERMES_MANAGED", "homebrew")
    result = cli("install")
    assert result.exit_code == 1
    assert "Homebrew" in result.stderr
    assert files(home) == {}


def test_a_file_that_cannot_be_written_is_a_message_and_exit_1(cli, home, monkeypatch):
    from canon_hermes_plugin.infrastructure.files import config_file

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(config_file, "write_atomic", full)
    result = cli("install")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr


def test_without_the_host_nothing_happens(cli, home, monkeypatch):
    monkeypatch.setitem(sys.modules, "hermes_constants", None)
    result = cli("install")
    assert result.exit_code == 1
    assert "Hermes Agent cannot be imported" in result.stderr
    assert files(home) == {}


@pytest.mark.slow
def test_field_58_the_host_itself_lists_the_plugin_as_enabled(cli, home):
    cli("install")
    script = "import sys; sys.argv[1:] = 'plugins list --json --user'.split()\nfrom hermes_cli.main import main; main()"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout.decode("utf-8")
    rows = {row["name"]: row for row in json.loads(shown[shown.index("[") :])}
    assert (rows["canon-hermes"]["status"], rows["canon-hermes"]["source"]) == ("enabled", "entrypoint")


@pytest.mark.parametrize("module", ["canon_hermes_plugin.cli"])
def test_the_module_works_like_the_console_script(home, module):
    result = subprocess.run(
        [sys.executable, "-m", module, "install"], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert result.returncode == 0
    assert config(home)["platforms"]["canon"]["enabled"] is True


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_field_50_output_degrades_to_what_the_stream_can_show(home, encoding):
    result = subprocess.run(
        [sys.executable, "-m", "canon_hermes_plugin.cli", "install"],
        env={**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"},
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0
    assert (b"ok plugin" in result.stdout) == (encoding != "utf-8")
    assert b"\x1b" not in result.stdout
    result.stdout.decode(encoding)
