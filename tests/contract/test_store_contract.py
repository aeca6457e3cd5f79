"""What every store promises, over each of its variants."""

from pathlib import Path

import pytest

from results.errors import AlreadyStored, InvalidKey, NotFound, ResultsError
from results.store import AsyncStore, Store, open_store

VARIANTS = ("file", "s3")


@pytest.fixture(params=VARIANTS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "file":
        return open_store(str(tmp_path / "results"))
    return open_store(request.getfixturevalue("bucket_url"))


def test_what_was_put_is_what_get_returns(store: Store) -> None:
    data = bytes(range(256)) * 100
    store.put("run/data/a.bin", data)
    assert store.get("run/data/a.bin") == data
    assert isinstance(store.get("run/data/a.bin"), bytes)


def test_put_replaces_an_object(store: Store) -> None:
    store.put("run/a", b"one")
    store.put("run/a", b"twotwo")
    assert store.get("run/a") == b"twotwo"


def test_the_same_put_twice_leaves_one_object(store: Store) -> None:
    store.put("run/a", b"same")
    store.put("run/a", b"same")
    assert [row.key for row in store.list("run")] == ["run/a"]


def test_an_empty_object_is_an_object(store: Store) -> None:
    store.put("run/empty", b"")
    assert store.get("run/empty") == b""
    assert store.get_tail("run/empty", 10) == b""


def test_put_new_leaves_an_object_that_is_there(store: Store) -> None:
    store.put_new("run/a", b"first")
    with pytest.raises(AlreadyStored, match="run/a"):
        store.put_new("run/a", b"second")
    assert store.get("run/a") == b"first"


def test_a_missing_object_is_not_found(store: Store) -> None:
    store.put("run/there", b"1")
    for key in ("run/gone", "run"):
        with pytest.raises(NotFound, match="run"):
            store.get(key)
        with pytest.raises(NotFound, match="run"):
            store.get_tail(key, 5)


def test_the_tail_is_the_last_bytes(store: Store) -> None:
    store.put("run/a", b"0123456789")
    assert store.get_tail("run/a", 3) == b"789"
    assert store.get_tail("run/a", 10) == b"0123456789"


def test_the_tail_of_a_short_object_is_the_whole_object(store: Store) -> None:
    store.put("run/a", b"0123")
    assert store.get_tail("run/a", 500) == b"0123"
    assert store.get_tail("run/a", 0) == b""


def test_a_listing_is_sorted_by_key_and_gives_sizes(store: Store) -> None:
    keys = ["run/data-x/1", "run/data/2", "run/data/10", "run/data.old/1", "run/a", "run/data/1/x", "run/B"]
    for number, key in enumerate(keys):
        store.put(key, b"x" * number)
    rows = list(store.list("run"))
    assert [row.key for row in rows] == sorted(keys)
    assert {row.key: row.size for row in rows} == {key: number for number, key in enumerate(keys)}


def test_a_listing_has_every_object_of_a_large_folder(store: Store) -> None:
    keys = [f"run/data/{number:05d}" for number in range(1100)]
    for key in keys:
        store.put(key, b"")
    assert [row.key for row in store.list("run/data")] == keys


def test_a_prefix_is_a_folder_not_the_start_of_a_name(store: Store) -> None:
    store.put("run/a", b"")
    store.put("run-2/a", b"")
    assert [row.key for row in store.list("run")] == ["run/a"]
    assert [row.key for row in store.list("run/")] == ["run/a"]
    assert [row.key for row in store.list("")] == ["run-2/a", "run/a"]


def test_a_missing_folder_is_empty(store: Store) -> None:
    assert list(store.list("nothing/here")) == []


def test_delete_removes_and_may_be_repeated(store: Store) -> None:
    store.put("run/a", b"1")
    store.delete("run/a")
    store.delete("run/a")
    assert list(store.list("run")) == []


def test_check_leaves_nothing_behind(store: Store) -> None:
    store.check()
    assert list(store.list("")) == []


@pytest.mark.parametrize("key", ["../x", "a/../b", "/a", "a//b", "a/", "", ".", "a\\b", "a\nb", "ä", "a b", "x" * 1025])
def test_sec_s15_a_key_that_could_leave_its_place_is_refused(store: Store, key: str) -> None:
    for use in (store.get, store.delete, lambda unsafe: store.put(unsafe, b"")):
        with pytest.raises(InvalidKey, match="key"):
            use(key)


def test_the_url_opens_the_same_store_again(store: Store) -> None:
    store.put("run/a", b"1")
    assert open_store(store.url).get("run/a") == b"1"


async def test_the_async_store_does_the_same_in_threads(store: Store) -> None:
    async with AsyncStore(store) as threaded:
        await threaded.check()
        await threaded.put("run/a", b"0123456789")
        assert await threaded.get("run/a") == b"0123456789"
        assert await threaded.get_tail("run/a", 2) == b"89"
        with pytest.raises(AlreadyStored):
            await threaded.put_new("run/a", b"")
        assert [row.key for row in await threaded.list("run")] == ["run/a"]
        await threaded.delete("run/a")
        with pytest.raises(NotFound):
            await threaded.get("run/a")
        assert threaded.url == store.url


def test_every_error_is_of_this_floor(store: Store) -> None:
    with pytest.raises(ResultsError):
        store.get("missing")
