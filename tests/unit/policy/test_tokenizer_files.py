"""Tokenizers come from this machine only, and count any text as plain text."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from gateway.policy.tokenizer_files import load_tokenizer

TIKTOKEN = ("tiktoken", "cl100k_base")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small byte-level tokenizer.json with a special token, truncation and padding switched on."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|im_start|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the quick brown fox jumps over the lazy dog " * 20], trainer)
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    path = tmp_path_factory.mktemp("tokenizers") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_tiktoken_counts() -> None:
    """The bundled vocabulary gives cl100k's counts."""
    tokenizer = load_tokenizer(TIKTOKEN)
    assert tokenizer.count("hello world") == 2
    assert tokenizer.count("") == 0


def test_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading opens no socket, whatever is named."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert load_tokenizer(TIKTOKEN).count("hello") == 1
    with pytest.raises(ValueError, match=r"not bundled.*cl100k_base.*tokenizer\.json"):
        load_tokenizer(("tiktoken", "o200k_base"))


def test_special_tokens_are_text(trained: Path) -> None:
    """Their spellings in a prompt count as the characters they are, and never raise (B103)."""
    text = "a <|endoftext|> b <|im_start|> <|fim_prefix|>"
    assert load_tokenizer(TIKTOKEN).count(text) > 10
    assert load_tokenizer(("huggingface", str(trained))).count("<|im_start|>") > 1


@pytest.mark.parametrize("run", ["^" * 20_000, "a" * 20_000, "_" * 20_000, " " * 20_000, "7" * 20_000])
def test_long_runs_are_counted(run: str) -> None:
    """One character over and over neither panics nor runs away (B101)."""
    assert 0 < load_tokenizer(TIKTOKEN).count(run) <= len(run)


def test_hugging_face_counts(trained: Path) -> None:
    """The whole text is counted, though the file asks for truncation and padding; the path is the policy's."""
    tokenizer = load_tokenizer(("huggingface", trained.name), trained.parent)
    assert tokenizer.count("fox") < 8
    assert tokenizer.count("the quick brown fox " * 10) >= 40


def test_files_are_loaded_once_and_again_when_replaced(trained: Path, tmp_path: Path) -> None:
    """A reload of the policy costs nothing; a new file is a new tokenizer."""
    copy = tmp_path / "tokenizer.json"
    copy.write_bytes(trained.read_bytes())
    spec = ("huggingface", str(copy))
    first = load_tokenizer(spec)
    assert load_tokenizer(spec) is first
    replaced = tmp_path / "new.json"
    replaced.write_bytes(trained.read_bytes())
    stamp = copy.stat().st_mtime_ns + 10**9
    replaced.replace(copy)
    os.utime(copy, ns=(stamp, stamp))
    assert load_tokenizer(spec) is not first


def test_bytes() -> None:
    """The upper bound, for models whose tokenizer is unknown."""
    assert load_tokenizer(("bytes", "")).count("héé") == 5


def test_faults_say_how_to_mend_them(tmp_path: Path) -> None:
    """A missing file, a broken one, an unknown kind."""
    with pytest.raises(ValueError, match="does not exist"):
        load_tokenizer(("huggingface", "missing.json"), tmp_path)
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    with pytest.raises(ValueError, match=r"is no tokenizer\.json"):
        load_tokenizer(("huggingface", str(broken)))
    with pytest.raises(ValueError, match="use tiktoken, huggingface or bytes"):
        load_tokenizer(("sentencepiece", "x"))
