"""Which store a results URL opens."""

from pathlib import Path

import pytest

from results.errors import StoreRefused
from results.store import open_store


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}", "FILE://{}"])
def test_paths_and_file_urls_open_a_folder(tmp_path: Path, form: str) -> None:
    store = open_store(form.format(tmp_path / "r"))
    store.put("a", b"1")
    assert (tmp_path / "r" / "a").read_bytes() == b"1"


@pytest.mark.parametrize("path", ["p", "./p", "p/../p"])
def test_a_relative_path_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    open_store(path).put("a", b"1")
    assert (tmp_path / "p" / "a").exists()


def test_a_percent_encoded_file_url_is_decoded(tmp_path: Path) -> None:
    open_store(f"file://{tmp_path}/with%20space").put("a", b"1")
    assert (tmp_path / "with space" / "a").exists()


def test_opening_touches_nothing(tmp_path: Path) -> None:
    open_store(str(tmp_path / "r"))
    open_store("s3://bucket/folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["s3://bucket/a/b", "gs://bucket/a/b"])
def test_bucket_urls_keep_their_text(url: str) -> None:
    assert open_store(url).url == url
    assert open_store(f"{url}/").url == url


def test_azure_takes_its_account_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StoreRefused, match="account"):
        open_store("az://container/a")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert open_store("az://container/a").url == "az://container/a"


@pytest.mark.parametrize("url", ["", "ftp://host/x", "https://bucket.s3.amazonaws.com/x", "s3://", "file://host/x"])
def test_a_url_that_names_no_store_is_refused(url: str) -> None:
    with pytest.raises(StoreRefused, match="results URL"):
        open_store(url)


@pytest.mark.parametrize("url", ["s3://KEYID:SECRET@bucket/x", "az://c/x?sig=SECRET", "ftp://u:SECRET@host/x"])
def test_sec_s11_credentials_in_a_url_are_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(StoreRefused, match="results URL") as caught:
        open_store(url)
    assert "SECRET" not in str(caught.value)
