"""All adapters by the policy's ``runtime:`` spelling. The one place to add a runtime."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.runtimes import (
    lightllm,
    llama_cpp,
    lmdeploy,
    onnxruntime_genai,
    openai,
    sglang,
    tensorrt_llm,
    transformers,
    vllm,
)
from gateway.runtimes.adapter import Adapter

ADAPTERS: Mapping[str, Adapter] = MappingProxyType(
    {
        module.ADAPTER.runtime: module.ADAPTER
        for module in (
            vllm,
            sglang,
            tensorrt_llm,
            llama_cpp,
            lightllm,
            onnxruntime_genai,
            transformers,
            lmdeploy,
            openai,
        )
    }
)
