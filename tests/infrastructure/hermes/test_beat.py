"""The note of the stream's last byte, written by the gateway and read by the doctor."""

import pytest
from canon_hermes_plugin.infrastructure.files.stream_activity import FILE_NAME, StreamActivityFile
from canon_hermes_plugin.infrastructure.hermes.beat import StatusBeat
from canon_hermes_plugin.infrastructure.memory.time import VirtualClock
from canon_hermes_plugin.ports.canon_stream import StreamHealth, StreamState


class Stream:
    def __init__(self, last):
        self.last = last

    def health(self):
        return StreamHealth(StreamState.LIVE, self.last, 0, None)


async def nothing():
    pass


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes"))
    (tmp_path / "hermes").mkdir()
    return tmp_path / "hermes"


async def test_the_last_byte_is_noted_as_wall_time(home):
    clock = VirtualClock(start_ms=1_000_000, instant=True)
    await clock.sleep(50)
    await StatusBeat(nothing, Stream(20.0), clock)()
    noted = StreamActivityFile(home).read()
    assert (noted.state, noted.last_byte_at) == ("live", 1_020_000)


async def test_a_stream_without_a_byte_is_noted_as_such(home):
    await StatusBeat(nothing, Stream(None), VirtualClock())()
    assert StreamActivityFile(home).read().last_byte_at is None


async def test_the_work_comes_first_and_its_failure_does_not_stop_the_note(home):
    async def fail():
        assert not (home / FILE_NAME).exists()
        raise RuntimeError("work")

    with pytest.raises(RuntimeError, match="work"):
        await StatusBeat(fail, Stream(None), VirtualClock())()
    assert (home / FILE_NAME).exists()


async def test_a_home_that_is_gone_is_not_made(home):
    home.rmdir()
    await StatusBeat(nothing, Stream(None), VirtualClock())()
    assert not home.exists()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"lastByteAt": true}', b'{"lastByteAt": "x"}', b"\xff"])
def test_an_unreadable_note_is_no_note(home, content):
    (home / FILE_NAME).write_bytes(content)
    found = StreamActivityFile(home).read()
    assert found is None or found.last_byte_at is None
