"""Make a coarser copy of a GGUF model: group-wise round-to-nearest of its linear weights to N bits.

Owns the "quantisation damage" behind the real-model part of the labelled set. The rounded weights are stored as Q8_0,
so any llama.cpp runs them at normal speed; what is lost is what N bits with one scale a group lose. Run by hand:
    python damage.py IN.gguf OUT.gguf BITS [NAME_PART ...]
Only tensors whose name holds one of the NAME_PARTs are rounded (all linear layers when none is given).
"""

from __future__ import annotations

import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
from gguf.quants import dequantize, quantize

GROUP = 64


def round_to_nearest(weights: np.ndarray, bits: int) -> np.ndarray:
    """Return the weights rounded to ``bits`` with one symmetric scale per group of 64 values of a row."""
    grouped = weights.reshape(-1, GROUP)
    top = 2 ** (bits - 1) - 0.5
    scale = np.abs(grouped).max(axis=1, keepdims=True) / top
    scale[scale == 0] = 1.0
    levels = np.clip(np.floor(grouped / scale) + 0.5, -top, top)
    return np.asarray((levels * scale).reshape(weights.shape), dtype=np.float32)


def main(source: str, target: str, bits: int, parts: list[str]) -> None:
    """Copy ``source`` to ``target`` with the chosen tensors rounded."""
    reader = GGUFReader(source)
    writer = GGUFWriter(target, arch=reader.fields["general.architecture"].contents())
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if key == "general.file_type":
            writer.add_file_type(LlamaFileType.MOSTLY_Q8_0)
            continue
        kind = field.types[0]
        writer.add_key_value(key, field.contents(), kind, field.types[-1] if kind == GGUFValueType.ARRAY else None)
    for tensor in reader.tensors:
        if tensor.tensor_type == GGMLQuantizationType.F32 or tensor.data.ndim < 2:
            writer.add_tensor(tensor.name, tensor.data)
            continue
        weights = dequantize(tensor.data, tensor.tensor_type)
        chosen = "token_embd" not in tensor.name and (not parts or any(part in tensor.name for part in parts))
        if chosen:
            weights = round_to_nearest(weights, bits)
        writer.add_tensor(
            tensor.name, quantize(weights, GGMLQuantizationType.Q8_0), raw_dtype=GGMLQuantizationType.Q8_0
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
