"""The texts of the demo's requests, and the tools and schemas that go with them.

Nothing but text: what is made of it is ``workload``'s. All of it is invented.
"""

from random import Random
from typing import Any

QUESTIONS = (
    "What is the capital of France?",
    "Name three fruits that grow in cold countries.",
    "Why is the sky blue? Answer in one sentence.",
    "Write one sentence about the sea.",
    "How do I boil an egg?",
    "Give me a title for a story about a lighthouse.",
    "What is the difference between a lake and a pond?",
    "Suggest a name for a small bakery.",
    "Tell me a fact about elephants.",
    "How many days are there in a leap year?",
    "Write a polite reply to a late invitation.",
    "What should I pack for a weekend in the mountains?",
)

SMALL_TALK = (
    ("I have a cat called Minka.", "That is a lovely name for a cat.", "What could I give her for her birthday?"),
    ("I want to learn to cook.", "Soups are a good place to begin.", "Which soup should I try first?"),
    ("It rains here all week.", "A good week for a book, then.", "Recommend a kind of book for it."),
)

CODE = (
    "Complete this function:\n```python\ndef mean(values):\n    \n```",
    "What is wrong here?\n```python\ndef add(a, b):\n    return a - b\n```",
    "Write a docstring for it:\n```python\ndef area(width, height):\n    return width * height\n```",
    "Rewrite with a list comprehension:\n```python\nout = []\nfor x in xs:\n    out.append(x * x)\n```",
    "Explain this line:\n```python\nnames = sorted(set(names), key=len)\n```",
)

FORECASTS = (
    "Sunny in Rome on Monday, 31 degrees.",
    "Rain in Oslo on Friday, 9 degrees.",
    "Snow in Quebec on Sunday, 0 degrees.",
    "Wind in Porto on Tuesday, 18 degrees.",
)

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sky": {"enum": ["sun", "rain", "snow", "wind"]},
        "day": {"enum": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]},
        "celsius": {"type": "integer", "minimum": 0, "maximum": 40},
    },
    "required": ["sky", "day", "celsius"],
    "additionalProperties": False,
}
"""Every value is bounded, so that any answer in this schema is a short one."""

RAG_SYSTEM = "Answer only from the documents, and cite them as [1], [2] or [3]."
DOCUMENTS = (
    "[1] The bridge at Arden was begun in 1931 and opened in 1934. It is 212 metres long.",
    "[2] The ferry to Arden ran until the bridge opened. A crossing took 25 minutes.",
    "[3] In 1978 the bridge got a second lane, after a winter in which it was closed for 40 days.",
)
RAG_QUESTIONS = (
    "When was the bridge opened?",
    "How long did the ferry take?",
    "Why did the bridge get a second lane?",
    "How long is the bridge?",
)

HARMLESS_TOOLS = (("get_weather", "Will it rain in Oslo tomorrow?"), ("search_docs", "Find the opening hours."))
PRIVILEGED_TOOLS = (
    ("payment_send", "Send Ann 25 euros for the dinner."),
    ("delete_account", "Please delete my account."),
    ("shell", "Show the free disk space."),
)
GRANTED_TOOL = ("refund_order", "Refund order 4711, the cup arrived broken.")
"""Privileged only for a tenant with the grant that makes it so."""

LONG_QUESTIONS = (
    "Which day had the highest pressure?",
    "On which day was the filter changed?",
    "Summarise the log in one sentence.",
    "Was there a leak?",
)


def tool(name: str) -> dict[str, Any]:
    """A function tool as the chat API takes it."""
    parameters = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    return {"type": "function", "function": {"name": name, "description": f"{name}.", "parameters": parameters}}


def pump_log(days: int) -> str:
    """A dull report of many lines, always the same: about 20 tokens a day."""
    rng = Random(7)  # noqa: S311 - makes text, guards nothing
    lines = []
    for day in range(1, days + 1):
        event = "filter changed" if day == days // 2 else rng.choice(("no leak found", "oil level fine", "quiet night"))
        lines.append(f"Day {day}: the pump ran {rng.randint(8, 23)} hours at {rng.randint(3, 9)} bar, {event}.")
    return "\n".join(lines)
