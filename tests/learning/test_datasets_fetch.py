"""Fetching: from a loopback server that breaks off, sends damage, or is not there at all."""

import hashlib
import io
import socket
import tarfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made_files import write_cifar_100, write_cinic_10, write_fashion_mnist, write_tiny_imagenet
from range_server import serving, write_certificate

from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets import DATASETS, Download, Verdict, check_dataset, fetch_dataset, load_dataset
from fedpcs.learning.datasets.download import download_file
from fedpcs.learning.datasets.unpacking import unpack

CONTENT = bytes(range(256)) * 4000


def checksum(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return write_certificate(tmp_path_factory.mktemp("tls") / "both.pem")


@pytest.fixture
def server(certificate, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(certificate) as running:
        running.files["/file.bin"] = CONTENT
        yield running


class TestOneFile:
    def fetch(self, server, target, on_progress=lambda done, total: None, **changes):
        download = Download(f"{server.url}/file.bin", checksum(CONTENT), len(CONTENT))
        download_file(replace(download, **changes), target, on_progress)

    def test_it_arrives_whole_and_leaves_nothing_else(self, server, tmp_path):
        seen = []
        self.fetch(server, tmp_path / "deep" / "file.bin", on_progress=lambda *step: seen.append(step))
        assert (tmp_path / "deep" / "file.bin").read_bytes() == CONTENT
        assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file.bin"]
        assert seen[-1] == (len(CONTENT), len(CONTENT))

    def test_broken_connections_are_taken_up_where_they_broke(self, server, tmp_path):
        server.breaks = [300_000, 1, 400_000]
        self.fetch(server, tmp_path / "file.bin")
        assert (tmp_path / "file.bin").read_bytes() == CONTENT
        asked = [where for _, where in server.requests]
        assert asked == [None, "bytes=300000-", "bytes=300001-", "bytes=700001-"]

    def test_a_server_without_ranges_sends_the_whole_again(self, server, tmp_path):
        server.knows_ranges, server.breaks = False, [300_000]
        self.fetch(server, tmp_path / "file.bin")
        assert (tmp_path / "file.bin").read_bytes() == CONTENT

    def test_a_server_that_always_breaks_off_ends_the_fetch(self, server, tmp_path):
        server.knows_ranges, server.breaks = False, [300_000] * 9
        with pytest.raises(InvalidInput, match=r"cannot reach 127\.0\.0\.1 .*the connection broke"):
            self.fetch(server, tmp_path / "file.bin")
        assert len(server.requests) == 2

    def test_an_interrupted_fetch_goes_on_the_next_time(self, server, tmp_path):
        def interrupt(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            self.fetch(server, tmp_path / "file.bin", on_progress=interrupt)
        here = (tmp_path / "file.bin.partial").stat().st_size
        assert 0 < here < len(CONTENT)
        self.fetch(server, tmp_path / "file.bin")
        assert server.requests[1:] == [("/file.bin", f"bytes={here}-")]
        assert (tmp_path / "file.bin").read_bytes() == CONTENT

    def test_a_partial_file_that_is_too_long_is_dropped(self, server, tmp_path):
        (tmp_path / "file.bin.partial").write_bytes(CONTENT + b"more")
        self.fetch(server, tmp_path / "file.bin")
        assert (tmp_path / "file.bin").read_bytes() == CONTENT

    def test_a_wrong_beginning_is_found_out_and_not_kept(self, server, tmp_path):
        (tmp_path / "file.bin.partial").write_bytes(b"of something else")
        with pytest.raises(CorruptFile, match=checksum(CONTENT)):
            self.fetch(server, tmp_path / "file.bin")
        assert list(tmp_path.iterdir()) == []
        self.fetch(server, tmp_path / "file.bin")

    def test_another_content_is_refused(self, server, tmp_path):
        with pytest.raises(CorruptFile, match="must have the checksum sha256:0000"):
            self.fetch(server, tmp_path / "file.bin", checksum="sha256:" + "0" * 64)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
    def test_a_full_disk_is_not_taken_for_a_broken_connection(self, server, tmp_path):
        (tmp_path / "file.bin.partial").symlink_to("/dev/full")
        with pytest.raises(InvalidInput, match=r"file\.bin\.partial cannot be written: No space left"):
            self.fetch(server, tmp_path / "file.bin")

    def test_a_file_the_server_does_not_have(self, server, tmp_path):
        with pytest.raises(InvalidInput, match=r"127\.0\.0\.1 answered 404"):
            self.fetch(server, tmp_path / "gone.bin", url=f"{server.url}/gone.bin")

    def test_more_than_was_published_is_refused_before_all_of_it_has_come(self, server, tmp_path):
        with pytest.raises(CorruptFile, match=r"must have 100,000 bytes, but more arrived") as caught:
            self.fetch(server, tmp_path / "file.bin", num_bytes=100_000)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    def test_a_server_without_a_certificate_we_trust_is_not_believed(self, server, tmp_path, monkeypatch):
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(InvalidInput, match=r"cannot reach 127\.0\.0\.1 .*certificate verify failed"):
            self.fetch(server, tmp_path / "file.bin")
        assert server.requests == []

    def test_an_address_without_https_is_not_asked(self, tmp_path, monkeypatch):
        monkeypatch.setenv("no_proxy", "*")
        with serving() as plain:
            plain.files["/file.bin"] = CONTENT
            with pytest.raises(InvalidInput, match=r"must go by https, got http://127"):
                self.fetch(plain, tmp_path / "file.bin")
        assert plain.requests == []

    def test_a_redirect_to_https_is_followed_and_one_away_from_it_refused(self, server, tmp_path):
        server.moved["/moved"] = f"{server.url}/file.bin"
        self.fetch(server, tmp_path / "file.bin", url=f"{server.url}/moved")
        assert (tmp_path / "file.bin").read_bytes() == CONTENT
        with serving() as plain:
            plain.files["/file.bin"] = CONTENT
            for away in (f"{plain.url}/file.bin", "ftp://127.0.0.1/file.bin"):
                server.moved["/away"] = away
                with pytest.raises(InvalidInput, match=r"must go by https, got (http|ftp):"):
                    self.fetch(server, tmp_path / "other.bin", url=f"{server.url}/away")
            assert plain.requests == []
        assert not (tmp_path / "other.bin").exists()


def tarred(folder, *, inside=""):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        tar.add(folder, arcname=inside or ".")
    return stream.getvalue()


def zipped(folder):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, path.relative_to(folder.parent))
    return stream.getvalue()


class TestWholeSets:
    """A catalogue entry whose downloads are on the loopback server and whose contents are the hand-made ones."""

    @pytest.fixture
    def publish(self, server, monkeypatch):
        def published(name, files, contents=None):
            for file_name, content in files.items():
                server.files[f"/{file_name}"] = content
            downloads = tuple(
                Download(f"{server.url}/{file_name}", checksum(content), len(content))
                for file_name, content in files.items()
            )
            changes = {} if contents is None else {"contents": contents}
            monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], downloads=downloads, **changes))

        return published

    def test_plain_files(self, publish, server, tmp_path):
        write_fashion_mnist(tmp_path / "source")
        names = list(DATASETS["fashion-mnist"].contents)
        publish("fashion-mnist", {name: (tmp_path / "source/FashionMNIST" / name).read_bytes() for name in names})
        folder = fetch_dataset("fashion-mnist", tmp_path / "data", progress=False)
        assert folder == tmp_path / "data" / "FashionMNIST"
        expected = load_dataset("fashion-mnist", tmp_path / "source").checksum
        assert load_dataset("fashion-mnist", tmp_path / "data").checksum == expected
        assert len(server.requests) == 4
        (folder / names[1]).unlink()
        fetch_dataset("fashion-mnist", tmp_path / "data", progress=False)
        assert [path for path, _ in server.requests[4:]] == [f"/{names[1]}"]

    def test_an_archive_that_breaks_off_on_its_way(self, publish, server, tmp_path, capsys):
        write_cifar_100(tmp_path / "source")
        source = tmp_path / "source" / "cifar-100-binary"
        digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in source.iterdir()}
        publish("cifar-100", {"cifar-100-binary.tar.gz": tarred(source, inside="cifar-100-binary")}, digests)
        server.breaks = [10_000]
        assert load_dataset("cifar-100", tmp_path / "data", download=True).num_classes == 100
        assert [where for _, where in server.requests] == [None, "bytes=10000-"]
        assert check_dataset("cifar-100", tmp_path / "data").verdict is Verdict.PUBLISHED
        talk = capsys.readouterr()
        assert talk.out == ""
        assert "cifar-100-binary.tar.gz" in talk.err
        # One file lost: it comes back, and what is there is left alone.
        (tmp_path / "data/cifar-100-binary/test.bin").unlink()
        (tmp_path / "data/cifar-100-binary/train.bin").write_bytes(bytes(3074))
        fetch_dataset("cifar-100", tmp_path / "data", progress=False)
        assert len(load_dataset("cifar-100", tmp_path / "data").train_inputs) == 1
        assert [path.name for path in (tmp_path / "data/.fedpcs-downloads").iterdir()] == ["cifar-100.lock"]

    def test_an_archive_without_a_folder_of_its_own(self, publish, tmp_path):
        """CINIC-10 is published that way. The tree has no published checksums, but the fetch can vouch for it."""
        write_cinic_10(tmp_path / "source")
        publish("cinic-10", {"CINIC-10.tar.gz": tarred(tmp_path / "source" / "CINIC-10")})
        folder = fetch_dataset("cinic-10", tmp_path / "data", progress=False)
        assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["test", "train", "valid"]
        assert check_dataset("cinic-10", tmp_path / "data").verdict is Verdict.PUBLISHED
        assert check_dataset("cinic-10", tmp_path / "data").verdict is Verdict.PUBLISHED  # decoded arrays do not count
        (folder / "valid/cat/left-aside.png").write_bytes(b"changed")
        assert check_dataset("cinic-10", tmp_path / "data").verdict is Verdict.SUBSET

    def test_a_zip_archive(self, publish, server, tmp_path):
        write_tiny_imagenet(tmp_path / "source")
        publish("tiny-imagenet", {"tiny-imagenet-200.zip": zipped(tmp_path / "source" / "tiny-imagenet-200")})
        fetch_dataset("tiny-imagenet", tmp_path / "data", progress=False)
        expected = load_dataset("tiny-imagenet", tmp_path / "source").checksum
        assert load_dataset("tiny-imagenet", tmp_path / "data").checksum == expected
        fetch_dataset("tiny-imagenet", tmp_path / "data", progress=False)
        assert len(server.requests) == 1

    def test_counts_as_published_without_a_fetch_are_not_vouched_for(self, tmp_path, monkeypatch):
        write_cinic_10(tmp_path)
        monkeypatch.setitem(DATASETS, "cinic-10", replace(DATASETS["cinic-10"], num_train=6, num_test=4))
        assert check_dataset("cinic-10", tmp_path).verdict is Verdict.UNVERIFIED
        write_cifar_100(tmp_path)
        monkeypatch.setitem(DATASETS, "cifar-100", replace(DATASETS["cifar-100"], num_train=6, num_test=3))
        assert check_dataset("cifar-100", tmp_path).verdict is Verdict.OTHER

    def test_two_that_fetch_at_once_take_turns(self, publish, server, tmp_path):
        write_cinic_10(tmp_path / "source")
        publish("cinic-10", {"CINIC-10.tar.gz": tarred(tmp_path / "source" / "CINIC-10")})
        threads = [
            threading.Thread(target=fetch_dataset, args=("cinic-10", tmp_path / "data", False)) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.requests) == 1
        assert load_dataset("cinic-10", tmp_path / "data")

    def test_a_damaged_archive_leaves_no_data_set(self, publish, tmp_path):
        write_cinic_10(tmp_path / "source")
        publish("cinic-10", {"CINIC-10.tar.gz": tarred(tmp_path / "source" / "CINIC-10")[:-5000]})
        with pytest.raises(CorruptFile, match=r"CINIC-10\.tar\.gz must be a whole archive"):
            fetch_dataset("cinic-10", tmp_path / "data", progress=False)
        assert not (tmp_path / "data" / "CINIC-10").exists()


def test_without_a_network_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: a connection is refused
        url = f"https://127.0.0.1:{taken.getsockname()[1]}/train_32x32.mat"
        entry = replace(DATASETS["svhn"], downloads=(Download(url, checksum(b""), 1),))
        monkeypatch.setitem(DATASETS, "svhn", entry)
        with pytest.raises(InvalidInput, match=r"cannot reach 127\.0\.0\.1 .*--data-dir with the files at") as caught:
            fetch_dataset("svhn", tmp_path, progress=False)
    assert str(tmp_path / "SVHN") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_with_an_md5_alone_is_fetched_and_the_fetch_says_so(server, tmp_path, monkeypatch, capsys):
    write_cinic_10(tmp_path / "source")
    content = server.files["/CINIC-10.tar.gz"] = tarred(tmp_path / "source" / "CINIC-10")
    md5 = f"md5:{hashlib.md5(content).hexdigest()}"
    download = Download(f"{server.url}/CINIC-10.tar.gz", md5, len(content))
    monkeypatch.setitem(DATASETS, "cinic-10", replace(DATASETS["cinic-10"], downloads=(download,)))
    fetch_dataset("cinic-10", tmp_path / "data", progress=True)
    assert "CINIC-10.tar.gz (has no SHA-256, only an MD5)" in " ".join(capsys.readouterr().err.split())


def test_a_data_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidInput, match=r"cannot be made.*--data-dir"):
        fetch_dataset("svhn", tmp_path / "file" / "data", progress=False)


@pytest.mark.parametrize("name", ["../escaped", "/absolute", "fine/../../escaped", "..\\escaped", "C:\\x"])
def test_a_zip_member_may_not_leave_its_folder(name, tmp_path):
    archive = tmp_path / "wild.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("fine", "fine")
        file.writestr(name, "wild")
    with pytest.raises(CorruptFile, match="keep to its own folder"):
        unpack(archive, tmp_path / "into")
    assert not (tmp_path / "into").exists()


def test_a_zip_member_may_not_be_a_link(tmp_path):
    archive = tmp_path / "wild.zip"
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(link, "/etc")
    with pytest.raises(CorruptFile, match="keep to its own folder"):
        unpack(archive, tmp_path / "into")


@pytest.mark.parametrize("kind", ["name", "link"])
def test_a_tar_member_may_not_leave_its_folder(kind, tmp_path):
    archive = tmp_path / "wild.tar.gz"
    member = tarfile.TarInfo("../escaped" if kind == "name" else "link")
    if kind == "link":
        member.type, member.linkname = tarfile.SYMTYPE, "/etc"
    with tarfile.open(archive, "w:gz") as tar:
        tar.addfile(member, io.BytesIO())
    with pytest.raises(CorruptFile, match="keep to its own folder"):
        unpack(archive, tmp_path / "into")
    assert not (tmp_path / "escaped").exists()
