"""One file per serving runtime: how to probe it, read its health and load, and attest its precision.

The runtimes: ``vllm`` (with ``vllm_info``), ``sglang``, ``tensorrt_llm``, ``llama_cpp``, ``lightllm``, ``lmdeploy``,
``onnxruntime_genai``, ``transformers``, and ``openai`` for any other server.

Everything here is pure: ``adapter`` states the contract, ``registry`` holds all runtimes, ``attestation`` is what one
reading told, ``compare`` sets it against a policy, ``faults`` reads error bodies. Shared ground: ``reading`` (OpenAI's
surface), ``exposition`` (Prometheus text), ``formats``, ``methods`` and ``hardware`` (names and what they mean).
"""

from gateway.runtimes.registry import ADAPTERS

__all__ = ["ADAPTERS"]
