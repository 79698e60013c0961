"""The store of captured media: bounds, wholeness, expiry, threads (turns §9.5, §13 invariants 48 and 51)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from canon_hermes_plugin.domain.media.captures import Capture, CaptureStore
from hypothesis import given
from hypothesis import strategies as st

MIB = 2**20


class Ticker:
    """A monotonic clock moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def capture(index: int = 0, size: int = 1, mime: str = "image/png", name: str = "a.png") -> Capture:
    return Capture(index, bytes(size), mime, name)


def test_what_is_read_is_what_was_registered() -> None:
    store = CaptureStore(Ticker())
    assert store.register(" c ", "m", [Capture(2, b"x", "Image/PNG; a=b", "..\\d/\x00b.png")])
    (item,) = store.read("c", " m ")
    assert (item.message_id, item.index, item.mime_type, item.file_name, item.data, item.size) == (
        "m", 2, "image/png", "b.png", b"x", 1,
    )  # fmt: skip
    assert store.read("c", "other") == ()
    assert store.read("other", "m") == ()
    with pytest.raises(AttributeError):
        item.data = b"y"  # type: ignore[misc]  # the point of the test


@pytest.mark.parametrize("name", ["", ".", "..", "a/", "\n"])
def test_names_fall_back(name: str) -> None:
    store = CaptureStore(Ticker())
    store.register("c", "m", [capture(name=name)])
    assert store.read("c", "m")[0].file_name == "canon-media.bin"


@pytest.mark.parametrize(
    "bad",
    [
        [capture(size=0)],
        [capture(size=10 * MIB + 1)],
        [capture(mime="png")],
        [capture(mime="image/" + "x" * 255)],
        [capture(mime="image/p\nng")],
        [capture(index=-1)],
        [capture(n) for n in range(17)],
        [capture(n, 9 * MIB) for n in range(4)],
        [],
    ],
)
def test_one_bad_item_and_nothing_is_held_and_the_earlier_set_is_gone(bad: list[Capture]) -> None:
    store = CaptureStore(Ticker())
    assert store.register("c", "m", [capture()])
    assert not store.register("c", "m", [*bad, capture(3)] if len(bad) == 1 else bad)
    assert store.read("c", "m") == ()
    assert store.usage() == (0, 0)


@pytest.mark.parametrize("key", [("", "m"), ("c", " "), ("c" * 257, "m")])
def test_keys_are_bounded(key: tuple[str, str]) -> None:
    store = CaptureStore(Ticker())
    assert not store.register(*key, [capture()])
    assert store.read(*key) == ()
    store.discard(*key)


def test_idle_sets_expire_and_reading_keeps_them() -> None:
    clock = Ticker()
    store = CaptureStore(clock)
    store.register("c", "a", [capture()])
    store.register("c", "b", [capture()])
    clock.now = 3000
    assert store.read("c", "a")
    clock.now = 3601
    assert store.read("c", "b") == ()
    assert store.read("c", "a")
    assert store.usage() == (1, 1)


def test_the_least_recently_used_leaves_first() -> None:
    store = CaptureStore(Ticker())
    for number in range(128):
        store.register("c", f"m{number}", [capture()])
    store.read("c", "m0")
    store.register("c", "new", [capture()])
    assert store.read("c", "m1") == ()
    assert store.read("c", "m0")
    assert store.usage()[0] == 128


def test_bytes_are_bounded() -> None:
    store = CaptureStore(Ticker())
    for number in range(3):
        store.register("c", f"m{number}", [capture(n, 10 * MIB) for n in range(3)])
    assert store.usage() == (2, 60 * MIB)
    assert store.read("c", "m0") == ()


def test_discard_forgets() -> None:
    store = CaptureStore(Ticker())
    store.register("c", "m", [capture()])
    store.discard("c", "m")
    assert store.read("c", "m") == ()
    assert store.usage() == (0, 0)


steps = st.lists(
    st.tuples(
        st.sampled_from(["register", "read", "discard", "wait"]),
        st.integers(0, 5),
        st.lists(st.integers(0, 11), max_size=18),
    ),
    max_size=30,
)


@given(steps)
def test_bounds_and_wholeness_for_all_histories(history: list[tuple[str, int, list[int]]]) -> None:
    clock, blob = Ticker(), memoryview(bytes(11 * MIB))
    store = CaptureStore(clock)
    registered: dict[str, list[int]] = {}
    for action, number, sizes in history:
        key = f"m{number}"
        if action == "register":
            items = [Capture(n, blob[: size * MIB], "image/png") for n, size in enumerate(sizes)]  # type: ignore[arg-type]  # sized view
            if store.register("c", key, items):
                registered[key] = [size * MIB for size in sizes]
        elif action == "read":
            found = [item.size for item in store.read("c", key)]
            assert found in ([], registered.get(key, []))
        elif action == "discard":
            store.discard("c", key)
        else:
            clock.now += 1800
        count, size = store.usage()
        assert count <= 128
        assert size <= 64 * MIB


def test_threads_see_whole_sets() -> None:
    store, stop = CaptureStore(Ticker()), threading.Event()

    def read() -> set[int]:
        seen: set[int] = set()
        while not stop.is_set():
            seen.add(len(store.read("c", "m")))
        return seen

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for _ in range(300):
            store.register("c", "m", [capture(n) for n in range(5)])
            store.register("c", "m", [capture(n) for n in range(2)])
            store.discard("c", "m")
        stop.set()
        assert set().union(*(reader.result() for reader in readers)) <= {0, 2, 5}
