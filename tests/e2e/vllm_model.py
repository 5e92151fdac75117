"""Turns the demo's GGUF into what vLLM loads: ``python vllm_model.py GGUF FOLDER``, in the environment that has vLLM.

Writes ``FOLDER/model`` (BF16 safetensors with the tokenizer) and ``FOLDER/adapter``, a LoRA adapter of random weights:
what it says is nonsense, but that it is loaded, listed and chosen by name is real.
"""

import json
import sys
from pathlib import Path

import torch  # type: ignore[import-not-found,unused-ignore]
from safetensors.torch import save_file  # type: ignore[import-not-found,unused-ignore]
from transformers import AutoModelForCausalLM, AutoTokenizer  # type: ignore[import-not-found,unused-ignore]

RANK = 8


def main(source: Path, folder: Path) -> None:
    place = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.bfloat16)
    model.hf_quantizer = None  # the weights are plain again, and must not be saved as if they were a GGUF's
    for holder in (model, model.config):
        for name in ("quantization_method", "is_quantized", "quantization_config"):
            vars(holder).pop(name, None)
    model.save_pretrained(folder / "model")
    AutoTokenizer.from_pretrained(**place).save_pretrained(folder / "model")
    write_adapter(model.config, folder / "adapter")


def write_adapter(config: object, folder: Path) -> None:
    """A LoRA adapter on every query projection."""
    torch.manual_seed(3)
    width = config.hidden_size  # type: ignore[attr-defined]
    tensors = {}
    for layer in range(config.num_hidden_layers):  # type: ignore[attr-defined]
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        tensors[f"{name}.lora_A.weight"] = torch.randn(RANK, width) * 0.1
        tensors[f"{name}.lora_B.weight"] = torch.randn(width, RANK) * 0.1
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "r": RANK, "lora_alpha": RANK, "target_modules": ["q_proj"], "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
