"""``canon-hermes install``: enable the plugin and the platform in the active Hermes profile (interactions §12.1)."""

from __future__ import annotations

import os
import sys

import click
from canon_hermes_plugin.cli.output import say
from canon_hermes_plugin.domain import install_plan
from canon_hermes_plugin.domain.host_config import PLATFORM, PLUGIN, at, plugin_state
from canon_hermes_plugin.infrastructure.files import yaml_edit
from canon_hermes_plugin.infrastructure.files.config_file import ConfigFile
from canon_hermes_plugin.infrastructure.files.env_file import EnvFile
from canon_hermes_plugin.infrastructure.hermes.home import HostHome, active_home, managed_by, managed_keys
from canon_hermes_plugin.ports.errors import ConfigurationError


@click.command()
@click.option("--setup", "with_setup", is_flag=True, help="Go on with canon-hermes setup.")
@click.pass_context
def command(ctx: click.Context, with_setup: bool) -> None:
    """Enable the plugin and the Canon platform in the active Hermes profile.

    Changes config.yaml at three places and nothing else in it: plugins.enabled, plugins.disabled and
    platforms.canon.enabled. Running it again changes nothing. When nobody has decided yet who may talk to the agent,
    CANON_ALLOW_ALL_USERS=true goes into the profile's .env.
    """
    try:
        home = active_home()
        done = install(home)
    except ConfigurationError as error:
        say(f"{error}; nothing was changed", mark="fault", error=True)
        sys.exit(1)
    for line in install_plan.report(done, str(home.config), str(home.env)):
        say(line, mark="ok")
    if done.access and os.environ.get(install_plan.GATEWAY_ALLOWED_USERS, "").strip():
        say(f"to let in fewer people, set {install_plan.ALLOWED_USERS} instead", mark="warning")
    if not with_setup:
        say("next: canon-hermes setup", mark="note")
        return
    from canon_hermes_plugin.cli.setup import command as setup

    ctx.invoke(setup)


def install(home: HostHome) -> install_plan.Installed:
    """Bring the profile's two files into shape and return what changed.

    Raises:
        ConfigurationError: the configuration is broken or cannot be changed; it was left as it is.
    """
    if owner := managed_by():
        raise ConfigurationError(f"this Hermes is managed by {owner}; enable the plugin and the platform there")
    config = ConfigFile(home.config)
    before = config.data()
    state = plugin_state(before)
    if state.ignored and isinstance(at(before, "plugins", "enabled"), list):
        raise ConfigurationError(
            f"{home.config}: plugins.enabled holds more than names, so Hermes ignores the whole list; remove the rest"
        )
    env = EnvFile(home.env)
    opens = install_plan.needs_access_rule(os.environ, env.values())
    if opens and managed_keys((install_plan.ALLOW_ALL,)):
        raise ConfigurationError(f"{install_plan.ALLOW_ALL} is pinned by an administrator of this machine")
    platform = at(before, "platforms", PLATFORM, "enabled") is not True
    config.edit(_enable)
    return install_plan.Installed(
        plugin=not state.listed,
        undisabled=state.blocked,
        platform=platform,
        access=opens and env.change({install_plan.ALLOW_ALL: "true"}),
    )


def _enable(text: str) -> str:
    text = yaml_edit.add_item(text, ("plugins", "enabled"), PLUGIN)
    text = yaml_edit.remove_item(text, ("plugins", "disabled"), PLUGIN)
    return yaml_edit.set_value(text, ("platforms", PLATFORM, "enabled"), True)
