"""The embedded demo: real llama.cpp servers with one model in three precisions, and the gateway in front of them.

``weights`` obtains the model and makes its variants, ``llama_server`` is one server's process, ``fleet`` starts and
stops several. Needs the ``demo`` extra (xllamacpp, gguf, numpy). Nothing here is imported by the gateway's own
processes.
"""
