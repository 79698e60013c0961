"""``canon-hermes sandbox``: a Canon, a model and the real Hermes gateway on this machine, to talk to.

Decides what a person sees and how the command ends. Everything it starts is stopped and removed again, whatever
happens.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

import click
from canon_hermes_plugin.cli.conversation import Printer
from canon_hermes_plugin.cli.terminal import Screen, printable
from canon_hermes_plugin.infrastructure.sandbox.demos import install_demos
from canon_hermes_plugin.infrastructure.sandbox.endpoint import Endpoint
from canon_hermes_plugin.infrastructure.sandbox.gateway import Gateway, GatewayError, GatewaySettings
from canon_hermes_plugin.infrastructure.sandbox.model import ScriptedModel
from canon_hermes_plugin.infrastructure.sandbox.participant import Participant
from canon_hermes_plugin.infrastructure.sandbox.server import DIRECT, LoopbackCanon
from canon_hermes_plugin.infrastructure.sandbox.session import Chat, ForeignAgent, LateError
from canon_hermes_plugin.infrastructure.sandbox.transcript import Transcript

PERSON = "user_dana"
_PACE = 0.02
_PATIENCE = 24 * 3600.0
_QUIT = frozenset({"/quit", "/exit"})


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A real model instead of the scripted one."""

    url: str
    name: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What the command was asked for."""

    say: tuple[str, ...]
    model: ModelChoice | None
    keep: bool
    streaming: bool
    port: int
    timeout: float
    gateway: bool = True
    raw: bool = False


@click.command("sandbox")
@click.option("--say", multiple=True, metavar="TEXT", help="Send TEXT as a person and print the answer. Repeatable.")
@click.option("--model-url", metavar="URL", help="Use the OpenAI-compatible model at URL, not the scripted one.")
@click.option("--model", "model_name", metavar="NAME", help="The model's name at --model-url.")
@click.option("--api-key-env", metavar="VARIABLE", help="The environment variable that holds the model's key.")
@click.option("--keep", is_flag=True, help="Keep the throw-away Hermes home and its logs.")
@click.option("--streaming/--no-streaming", default=True, show_default=True, help="Let the host stream its answers.")
@click.option("--no-gateway", is_flag=True, help="Start only Canon and wait for a gateway of yours to connect.")
@click.option("--raw", is_flag=True, help="Show trail and metadata of each answer as Canon keeps them, as JSON.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The loopback Canon's port (default: any).")
@click.option("--timeout", default=120.0, type=click.FloatRange(1), show_default=True, help="Seconds for an answer.")
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option
    say: tuple[str, ...],
    model_url: str | None,
    model_name: str | None,
    api_key_env: str | None,
    keep: bool,
    streaming: bool,
    no_gateway: bool,
    raw: bool,
    port: int,
    timeout: float,
) -> None:
    """Try the plugin without an account and without a network.

    Starts a stand-in for Canon, a scripted model and the installed Hermes gateway on a throw-away home. With --say it
    sends your text as a person, prints the conversation and exits; without it, it gives you a prompt until Ctrl-C.
    """
    if any(not text.strip() for text in say):
        raise click.UsageError("--say needs a text.")
    if no_gateway:
        _refuse_with_no_gateway(
            {"--say": bool(say), "--model-url": bool(model_url), "--keep": keep, "--no-streaming": not streaming}
        )
    model = _model_choice(model_url, model_name, api_key_env)
    options = SandboxOptions(say, model, keep, streaming, port, timeout, gateway=not no_gateway, raw=raw)
    screen = Screen()
    with _ending_on_signals():
        try:
            (_run if options.gateway else _run_without_gateway)(options, screen)
        except GatewayError as error:
            _fail(_explained(error, options), error.log)
        except KeyboardInterrupt:
            if say:
                raise click.exceptions.Exit(130) from None
            screen.line("")


_INSTEAD = {
    "--say": "write at its prompt once your gateway is connected",
    "--model-url": "your gateway speaks to the model of its own config.yaml; choose it there",
    "--keep": "there is no throw-away home; your gateway keeps its own",
    "--no-streaming": "your gateway streams as its own config.yaml says; set streaming.enabled there",
}


def _refuse_with_no_gateway(given: Mapping[str, bool]) -> None:
    """Refuse what only the gateway of the sandbox would heed, and say where it is decided instead."""
    for option, there in given.items():
        if there:
            raise click.UsageError(f"{option} cannot go with --no-gateway: {_INSTEAD[option]}.")


def _model_choice(url: str | None, name: str | None, key_variable: str | None) -> ModelChoice | None:
    if url is None:
        if name or key_variable:
            raise click.UsageError("--model and --api-key-env need --model-url.")
        return None
    try:
        Endpoint.parse(url)
    except ValueError as error:
        raise click.UsageError(f"--model-url {printable(url)}: {error}.") from error
    if not name:
        raise click.UsageError("--model-url needs --model.")
    if key_variable is None:
        return ModelChoice(url, name, "unused")
    key = os.environ.get(key_variable, "").strip()
    if not key:
        raise click.UsageError(f"The environment variable {key_variable} is not set.")
    return ModelChoice(url, name, key)


def _require_reachable(choice: ModelChoice) -> None:
    """Refuse to start without the model: the host would post its failure as an answer, which looks like success."""
    endpoint = Endpoint.parse(choice.url)
    trouble = endpoint.trouble()
    if trouble is not None:
        raise click.ClickException(f"The model at {printable(endpoint.shown)} cannot be reached: {printable(trouble)}.")


def _run(options: SandboxOptions, screen: Screen) -> None:
    if options.model is not None:
        _require_reachable(options.model)
    with _canon(options.port) as canon, _model(options.model) as (choice, about):
        settings = GatewaySettings(
            canon=canon.environment(),
            model_url=choice.url,
            model_name=choice.name,
            model_key=choice.key,
            streaming=options.streaming,
            home_channel=DIRECT,
            # The host asks before /new and /undo, in words for a chat with buttons. Nothing here is worth the question.
            config={"approvals": {"destructive_slash_confirm": False}},
        )
        gateway = Gateway(settings, keep=options.keep)
        screen.line(f"Canon: {canon.base_url}. Model: {about}. Starting the Hermes gateway.", "dim")
        try:
            with gateway:
                chat = Chat(canon, gateway)
                chat.wait_connected()
                screen.line("The gateway is connected.", "dim")
                _converse(chat, options, screen)
        finally:
            if options.keep:
                screen.line(f"Kept: {gateway.root}", "dim")


def _run_without_gateway(options: SandboxOptions, screen: Screen) -> None:
    with _canon(options.port) as canon:
        screen.line("Canon waits for a gateway with this environment (Ctrl-C ends):", "dim")
        for name, value in canon.environment().items():
            screen.line(f"{name}={value}")
        chat = Chat(canon, ForeignAgent())
        chat.wait_connected(timeout=_PATIENCE)
        screen.line("A gateway is connected.", "dim")
        _converse(chat, options, screen)


@contextmanager
def _canon(port: int) -> Generator[LoopbackCanon]:
    canon = LoopbackCanon(port=port)
    try:
        canon.start()
    except OSError as error:
        raise click.ClickException(f"Port {port} cannot be used: {error.strerror}.") from error
    try:
        yield canon
    finally:
        canon.stop()


@contextmanager
def _model(choice: ModelChoice | None) -> Generator[tuple[ModelChoice, str]]:
    if choice is not None:
        yield choice, printable(choice.name)
        return
    with ScriptedModel(pace=_PACE) as model:
        install_demos(model)
        yield ModelChoice(model.url, "scripted-model", "sk-loopback"), "the scripted model"


def _converse(chat: Chat, options: SandboxOptions, screen: Screen) -> None:
    person = Participant(chat, DIRECT, PERSON, timeout=options.timeout)
    typed_is_shown = not options.say and sys.stdin.isatty()
    transcript = Transcript(chat.canon, DIRECT, options.raw)
    with Printer(transcript, screen, hide_person=typed_is_shown, progress=not options.say) as printer:
        if options.say:
            for asked in options.say:
                person.say_and_settle(asked)
            return
        screen.line('Write something, for example "hello" or "demo". Ctrl-C ends.', "dim")
        while (text := printer.read()) is not None:
            if text.strip() in _QUIT:
                return
            try:
                _act(person, text, screen)
            except GatewayError as error:
                if not chat.gateway.running:
                    raise
                told = _sentence(_explained(error, options))
                screen.line(f"{told} Write on, or leave with Ctrl-C.", "red")


def _act(person: Participant, typed: str, screen: Screen) -> None:
    """Take a typed line as the answer to a question of the agent when it is one, else as a message."""
    if not typed.strip():
        return
    if any(person.answer(typed, asked) for asked in reversed(person.waiting())):
        person.follow()
    elif complaint := person.mistyped(typed):
        screen.line(_sentence(complaint), "red")
    else:
        person.say(typed)


def _sentence(text: str) -> str:
    return f"{printable(text[:1].upper() + text[1:])}."


def _explained(error: GatewayError, options: SandboxOptions) -> str:
    """Return the error's text, with the way to more patience when the time of ``--timeout`` ran out."""
    late = isinstance(error, LateError) and error.limit == options.timeout
    return f"{error}; --timeout SECONDS waits longer" if late else str(error)


def _fail(message: str, log: str) -> NoReturn:
    click.echo(f"Error: {printable(message)}", err=True)
    click.echo("The end of the gateway's log:", err=True)
    click.echo(printable(log), err=True)
    raise click.exceptions.Exit(1)


@contextmanager
def _ending_on_signals() -> Generator[None]:
    """Let SIGTERM and SIGHUP end the command the way Ctrl-C does, so that nothing is left behind."""

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    previous = {name: signal.signal(getattr(signal, name), interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in previous.items():
            signal.signal(getattr(signal, name), handler)
