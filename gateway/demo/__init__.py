"""The embedded demo: real llama.cpp servers with one model in three precisions, and the gateway in front of them.

- ``run``, ``screen``, ``interrupt``, ``keep``   the order of things, what a person sees, how it ends
- ``weights``, ``llama_server``, ``fleet``       the model and its variants, one server's process, several of them
- ``policy``, ``gateway_process``                what the gateway is told, and its process
- ``workload``, ``prompts``, ``client``, ``traffic``, ``edit``   what is sent, by whom, and two edits in between
- ``access``, ``witness``, ``gathering``, ``proof``, ``report``   three accounts of each request, compared and told
- ``rollout``                                    the second part: a candidate judged live

Needs the ``demo`` extra (xllamacpp, gguf, numpy). Nothing here is imported by the gateway's own processes.
"""
