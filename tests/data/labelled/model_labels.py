"""Labels of the real models' answers, given by reading each answer, and the choice of answers that are kept.

Owns nothing but judgement. A line is: id, what must fail, what is unsure, what must pass. `compile_models.py` joins them with the
collected answers. How they were judged: *repetition* when the answer visibly turns in a circle; *garbage* when it is no language;
*script* when the language is not the one asked in; *numbers* when a number is in none of the given documents; *truncation* when
finish_reason is length. Unsure = a fair reader could say either.
"""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

KEPT = """
q4_1/chat-00: truncation repetition | |
q4_1/chat-01: | | truncation finish_reason empty repetition garbage script refusal
q4_1/chat-02: truncation repetition | |
q4_1/chat-03: | | truncation finish_reason repetition garbage script refusal
q4_1/chat-04: | | truncation finish_reason repetition garbage script refusal
q4_1/chat-05: truncation | | repetition garbage script
q4_1/chat-06: | | truncation repetition garbage script
q4_1/chat-07: truncation | repetition | garbage
q4_1/chat-08: truncation repetition | |
q4_1/chat-09: truncation | | repetition garbage
q4_1/chat-10: truncation | | repetition garbage
q4_1/chat-11: | | truncation empty
q4_1/chat-12: truncation repetition | |
q4_1/chat-13: truncation | | repetition garbage
q4_1/chat-14: truncation | repetition | garbage
q4_1/chat-15: truncation repetition | | garbage
q4_1/chat-zh-00: truncation repetition | |
q4_1/chat-zh-01: truncation repetition | garbage |
q4_1/chat-zh-02: truncation | repetition garbage |
q4_1/chat-zh-03: truncation repetition | |
q4_1/chat-zh-04: truncation repetition script | garbage |
q4_1/chat-zh-05: truncation repetition | |
q4_1/json-prompt-00: | | json truncation finish_reason
q4_1/json-object-00: | | json truncation finish_reason
q4_1/json-prompt-01: | | json truncation
q4_1/json-object-01: | | json truncation
q4_1/json-prompt-02: | | json truncation
q4_1/json-object-02: | | json truncation
q4_1/json-prompt-03: | | json truncation
q4_1/json-object-03: | | json truncation
q4_1/json-schema-00: | | json schema truncation
q4_1/json-schema-01: truncation | |
q4_1/code-00: | | fences python truncation repetition
q4_1/code-01: | | fences python truncation repetition
q4_1/code-02: truncation | | fences python
q4_1/code-03: | | fences truncation
q4_1/code-04: truncation repetition | |
q4_1/code-05: | script | fences python truncation
q4_1/rag-00: numbers | | truncation
q4_1/rag-01: | | numbers truncation
q4_1/rag-02: numbers | | truncation
q4_1/rag-zh-00: truncation numbers | |
q4_1/table-00: | | numbers truncation
q4_1/table-01: | | numbers truncation
q4_1/tools-auto: truncation | | tool_leak
q4_1/tools-required: truncation | tool_choice | tool_leak
q4_1/tools-forced: truncation | tool_choice | tool_leak
rtn4/chat-01: truncation repetition | |
rtn4/chat-02: truncation repetition | |
rtn4/chat-03: truncation repetition | |
rtn4/chat-05: truncation repetition | garbage |
rtn4/chat-06: truncation repetition | |
rtn4/chat-07: truncation repetition | |
rtn4/chat-09: truncation repetition | |
rtn4/chat-10: truncation repetition | |
rtn4/chat-11: truncation repetition | garbage |
rtn4/chat-13: truncation repetition | |
rtn4/chat-14: truncation repetition | |
rtn4/chat-15: truncation repetition | |
rtn4/chat-zh-00: truncation repetition script | |
rtn4/chat-zh-01: truncation repetition script | |
rtn4/chat-zh-02: truncation repetition script | |
rtn4/chat-zh-03: truncation repetition | garbage |
rtn4/chat-zh-04: truncation repetition script | |
rtn4/chat-zh-05: truncation repetition script | |
rtn4/json-prompt-00: json | | truncation
rtn4/json-object-00: | | json truncation
rtn4/json-prompt-01: truncation json | repetition |
rtn4/json-object-01: | | json truncation
rtn4/json-prompt-02: truncation repetition | json |
rtn4/json-object-02: | | json
rtn4/json-prompt-03: truncation json | repetition |
rtn4/json-object-03: | | json
rtn4/json-schema-00: | | json schema truncation
rtn4/json-schema-01: truncation | |
rtn4/code-00: truncation repetition | |
rtn4/code-01: truncation repetition | | fences python
rtn4/code-02: truncation repetition | |
rtn4/code-04: truncation repetition | fences |
rtn4/code-05: truncation repetition | garbage script |
rtn4/rag-00: truncation numbers repetition | garbage |
rtn4/rag-01: truncation numbers repetition | garbage |
rtn4/rag-02: truncation numbers repetition | garbage |
rtn4/rag-zh-00: truncation repetition | garbage |
rtn4/table-00: truncation numbers repetition | |
rtn4/table-01: truncation numbers | repetition |
rtn4/tools-auto: truncation repetition | | tool_leak
rtn4/tools-required: truncation repetition | tool_choice | tool_leak
q8kv4/chat-00: | | truncation finish_reason empty refusal
q8kv4/chat-01: | | truncation repetition garbage script refusal
q8kv4/chat-02: truncation | | repetition garbage
q8kv4/chat-03: | | truncation repetition garbage script refusal
q8kv4/chat-04: | | truncation repetition garbage script refusal
q8kv4/chat-05: truncation | | repetition garbage
q8kv4/chat-06: | | truncation repetition garbage
q8kv4/chat-07: truncation repetition | garbage script |
q8kv4/chat-08: truncation | repetition | garbage
q8kv4/chat-09: truncation | | repetition garbage
q8kv4/chat-10: truncation | | repetition garbage
q8kv4/chat-11: | | truncation empty
q8kv4/chat-12: truncation | repetition | garbage
q8kv4/chat-13: | | truncation repetition garbage
q8kv4/chat-14: truncation | | repetition garbage
q8kv4/chat-15: truncation | repetition refusal | garbage
q8kv4/chat-zh-00: script | | truncation repetition
q8kv4/chat-zh-01: truncation | repetition garbage |
q8kv4/chat-zh-02: script | | truncation
q8kv4/chat-zh-03: truncation script | |
q8kv4/chat-zh-04: truncation script | repetition |
q8kv4/chat-zh-05: truncation | garbage |
q8kv4/json-prompt-00: | | json truncation
q8kv4/json-object-00: | | json truncation
q8kv4/json-prompt-01: | | json truncation
q8kv4/json-object-01: | | json truncation
q8kv4/json-prompt-02: | | json truncation
q8kv4/json-object-02: | | json truncation
q8kv4/json-prompt-03: truncation | repetition |
q8kv4/json-object-03: truncation | repetition |
q8kv4/json-schema-00: | | json schema truncation
q8kv4/json-schema-01: truncation | |
q8kv4/code-00: | | fences python truncation
q8kv4/code-01: python | | fences truncation
q8kv4/code-02: truncation | |
q8kv4/code-03: sql | | fences
q8kv4/code-04: truncation repetition | garbage |
q8kv4/code-05: | script | fences python truncation
q8kv4/rag-00: numbers | | truncation
q8kv4/rag-01: numbers | | truncation
q8kv4/rag-02: numbers | | truncation
q8kv4/rag-zh-00: truncation numbers repetition | garbage |
q8kv4/table-00: | numbers | truncation
q8kv4/table-01: truncation numbers | repetition |
q8kv4/tools-auto: truncation | | tool_leak repetition
q8kv4/tools-required: truncation | tool_choice | tool_leak
q8kv4/tools-forced: truncation | tool_choice | tool_leak
rtn3d/chat-01: truncation repetition | garbage |
rtn3d/chat-02: truncation repetition | garbage |
rtn3d/chat-03: truncation repetition | garbage |
rtn3d/chat-05: truncation repetition | garbage |
rtn3d/chat-06: truncation | repetition | garbage
rtn3d/chat-07: truncation repetition | garbage |
rtn3d/chat-09: truncation repetition | garbage |
rtn3d/chat-10: truncation repetition | |
rtn3d/chat-11: truncation repetition | garbage |
rtn3d/chat-13: truncation repetition | garbage |
rtn3d/chat-14: truncation repetition | |
rtn3d/chat-15: truncation | repetition |
rtn3d/chat-zh-01: truncation repetition | script garbage |
rtn3d/chat-zh-02: truncation repetition script | |
rtn3d/chat-zh-04: truncation repetition | script garbage |
rtn3d/chat-zh-05: truncation repetition | script garbage |
rtn3d/json-prompt-00: truncation json | repetition |
rtn3d/json-object-00: truncation | repetition |
rtn3d/json-prompt-01: truncation json repetition | |
rtn3d/json-object-01: | | json truncation
rtn3d/json-prompt-02: truncation json repetition | |
rtn3d/json-object-02: | | json truncation
rtn3d/json-prompt-03: truncation repetition | |
rtn3d/json-object-03: truncation repetition | |
rtn3d/json-schema-00: | | json schema truncation
rtn3d/code-01: truncation repetition | |
rtn3d/code-02: truncation repetition | |
rtn3d/code-04: truncation repetition | fences |
rtn3d/code-05: truncation repetition | script |
rtn3d/rag-00: truncation numbers repetition | |
rtn3d/rag-01: truncation numbers repetition | |
rtn3d/rag-02: truncation repetition | numbers garbage |
rtn3d/rag-zh-00: truncation repetition | numbers garbage |
rtn3d/table-00: truncation repetition | numbers garbage |
rtn3d/table-01: truncation numbers repetition | |
rtn3d/tools-auto: truncation repetition | garbage | tool_leak
rtn3/chat-01: truncation garbage | repetition |
rtn3/chat-03: truncation garbage | repetition |
rtn3/chat-05: truncation garbage repetition | |
rtn3/chat-06: truncation garbage | repetition |
rtn3/chat-07: truncation garbage | repetition |
rtn3/chat-09: truncation garbage repetition | |
rtn3/chat-10: truncation garbage repetition | |
rtn3/chat-13: truncation garbage | repetition |
rtn3/chat-15: truncation garbage repetition | |
rtn3/chat-zh-01: truncation garbage repetition | script |
rtn3/chat-zh-02: truncation garbage repetition | script |
rtn3/chat-zh-05: truncation garbage repetition | script |
rtn3/json-object-00: | | json truncation
rtn3/json-prompt-01: truncation garbage | repetition |
rtn3/code-01: truncation garbage | repetition |
rtn3/rag-00: truncation garbage | repetition numbers |
rtn3/table-00: truncation garbage | repetition numbers |
rtn3/tools-required: truncation garbage | repetition tool_choice | tool_leak
rtn2d/chat-01: truncation garbage repetition | |
rtn2d/chat-03: truncation garbage repetition | |
rtn2d/chat-06: truncation garbage repetition | |
rtn2d/chat-07: truncation garbage repetition | |
rtn2d/chat-09: truncation repetition | garbage |
rtn2d/chat-11: truncation garbage repetition | |
rtn2d/chat-14: truncation garbage repetition | |
rtn2d/chat-zh-01: truncation garbage repetition | script |
rtn2d/chat-zh-02: truncation garbage | script repetition |
rtn2d/chat-zh-05: truncation garbage repetition | script |
rtn2d/json-object-01: | | json truncation
rtn2d/json-prompt-02: truncation garbage | repetition |
rtn2d/code-05: truncation garbage repetition | script |
rtn2d/rag-01: truncation garbage | repetition |
rtn2d/rag-zh-00: garbage | script repetition | truncation
rtn2d/table-01: truncation repetition | garbage |
rtn2d/tools-auto: truncation garbage | repetition | tool_leak
"""

HELD_OUT = """
q4_1/h-chat-00: truncation | | repetition garbage script refusal
q4_1/h-chat-01: truncation | repetition | refusal
q4_1/h-chat-02: truncation | | repetition garbage
q4_1/h-chat-03: | | truncation empty garbage
q4_1/h-chat-04: | | truncation repetition garbage
q4_1/h-chat-05: | | truncation repetition garbage
q4_1/h-chat-06: | | truncation empty garbage
q4_1/h-chat-07: truncation | | repetition garbage
q4_1/h-chat-08: truncation | | repetition garbage
q4_1/h-chat-09: | | truncation empty
q4_1/h-chat-10: | | truncation repetition garbage
q4_1/h-chat-11: truncation | | repetition garbage
q4_1/h-chat-12: | | truncation
q4_1/h-chat-13: truncation | repetition refusal |
q4_1/h-chat-zh-00: script | | truncation
q4_1/h-chat-zh-01: truncation | garbage |
q4_1/h-chat-zh-02: truncation | repetition garbage |
q4_1/h-chat-zh-03: script | | truncation
q4_1/h-code-00: | | fences python truncation
q4_1/h-code-01: truncation python | | fences
q4_1/h-code-02: | | fences sql truncation
q4_1/h-code-03: | | fences truncation
q4_1/h-json-schema-prompt: truncation | repetition |
q4_1/h-json-schema: | | json schema truncation
q4_1/h-rag-00: numbers | | truncation
q4_1/h-rag-01: numbers | | truncation
q4_1/h-rag-zh: truncation numbers | garbage |
q4_1/h-table-00: | | truncation
q4_1/h-table-01: numbers | | truncation
rtn4d/h-chat-00: truncation | repetition | garbage
rtn4d/h-chat-01: truncation | repetition | refusal
rtn4d/h-chat-02: truncation | | repetition garbage
rtn4d/h-chat-03: truncation repetition | |
rtn4d/h-chat-04: truncation | | repetition garbage
rtn4d/h-chat-05: | | truncation
rtn4d/h-chat-06: truncation repetition | |
rtn4d/h-chat-07: truncation | repetition | garbage
rtn4d/h-chat-08: truncation | repetition | garbage
rtn4d/h-chat-09: truncation repetition | |
rtn4d/h-chat-10: truncation | | repetition garbage
rtn4d/h-chat-11: truncation | repetition |
rtn4d/h-chat-12: truncation repetition | |
rtn4d/h-chat-13: truncation repetition | |
rtn4d/h-chat-zh-00: truncation script | repetition |
rtn4d/h-chat-zh-01: truncation repetition script | |
rtn4d/h-chat-zh-02: truncation repetition | |
rtn4d/h-chat-zh-03: truncation script | repetition |
rtn4d/h-code-00: truncation repetition | |
rtn4d/h-code-01: truncation | repetition |
rtn4d/h-code-02: truncation repetition | |
rtn4d/h-code-03: truncation repetition | |
rtn4d/h-json-schema-prompt: truncation | |
rtn4d/h-json-schema: | | json schema truncation
rtn4d/h-rag-00: truncation | |
rtn4d/h-rag-01: truncation numbers | |
rtn4d/h-rag-zh: truncation repetition | garbage |
rtn4d/h-table-00: truncation | repetition |
rtn4d/h-table-01: truncation | | numbers
"""
