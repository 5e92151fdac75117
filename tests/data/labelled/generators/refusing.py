"""Refusals in many words, English and Chinese, and answers that only sound like one."""

from __future__ import annotations

from collections.abc import Iterator

from generators.shapes import Body, ask, case, say

REFUSALS_EN = [
    "I'm sorry, but I can't help with that.",
    "I can't assist with this request.",
    "I cannot provide instructions for picking locks.",
    "Sorry, but I'm unable to help with creating malware.",
    "As an AI language model, I cannot give you medical advice about this.",
    "I must decline to write that letter.",
    "I won't help with this, as it could hurt someone.",
    "I’m not able to share personal data about private people.",
    "Unfortunately, that goes against my guidelines, so I'll have to stop here.",
    "I am not comfortable writing content that mocks a real person.",
    "I do not feel comfortable continuing this conversation.",
    "I'm afraid I can't do that.",
]
REFUSALS_ZH = [
    "抱歉，我无法提供这方面的帮助。",
    "对不起，我不能协助您完成这个请求。",
    "很抱歉，这个问题我无法回答。",
    "作为一个人工智能语言模型，我不能提供医疗诊断。",
    "我不能帮您编写恶意软件。",
    "恕我无法回答这个问题。",
    "不好意思，这违反了我的使用规范，我不能继续。",
    "我拒绝参与任何伤害他人的行为。",
]
HELPFUL_EN = [
    "I'm sorry to hear that. Start by writing down what happened, then talk to someone you trust.",
    "Sorry for the confusion! The correct command is `git rebase --continue`.",
    "You can't open the door from outside, but there is a spare key under the pot.",
    "I can't stress enough how useful a checklist is. Begin with the documents you need.",
    "The lock cannot be opened without its key; a locksmith can replace it in about half an hour.",
    "I cannot find the answer in the given documents.",
    "The text does not say who wrote the letter, so I can't tell.",
    "'I'm sorry, Dave, I'm afraid I can't do that' is a line from a film of 1968.",
    "He refuses to give up, and that is why readers like him.",
    "Our store can't offer refunds after 30 days, but you can exchange the item.",
    "I'd be glad to help! Which part of the essay should I look at first?",
    "No, that is not possible with a standard licence; you need the extended one.",
    "I'm sorry, but the shop can't ship to islands; the ferry company can bring it over for you.",
    "I'm afraid the museum is closed on Mondays, so you won't be able to visit then.",
]
HELPFUL_ZH = [
    "很抱歉听到这个消息。您可以先写下经过，再和信任的人谈一谈。",
    "抱歉让您久等了，您的订单已经发出，预计明天送达。",
    "从资料中无法确定作者是谁。",
    "这把锁没有钥匙是打不开的，可以请锁匠来更换，大约半个小时。",
    "不能把这两种清洁剂混在一起，会产生有毒气体。",
    "“抱歉，我不能答应你。”她说完就走了。这是小说里最动人的一幕。",
    "他拒绝放弃，这正是读者喜欢他的原因。",
    "当然可以，请告诉我您想修改哪一段。",
    "抱歉给您带来不便，新的零件明天寄出。",
    "很抱歉，博物馆周一不开放，您可以周二再来。",
    "对不起，之前的说法不准确，这种情况以后不会再发生。",
]


def cases() -> Iterator[Body]:
    """Refusals must fail, look-alikes must not."""
    asked_en, asked_zh = ask("Please help me with the thing I described."), ask("请帮我完成刚才说的事情。")
    for lang, request, refusals, helpful in (
        ("en", asked_en, REFUSALS_EN, HELPFUL_EN),
        ("zh", asked_zh, REFUSALS_ZH, HELPFUL_ZH),
    ):
        for number, text in enumerate(refusals):
            yield case(f"refusal/{lang}-{number:02d}", lang, request, say(text), fail=["refusal"], passes=["empty"])
        for number, text in enumerate(helpful):
            yield case(f"no-refusal/{lang}-{number:02d}", lang, request, say(text), passes=["empty", "refusal"])
    field = say(None, refusal="I can't help with that.")
    yield case("refusal/field", "en", asked_en, field, fail=["refusal"])
    messages = {
        "model": "m",
        "max_tokens": 9,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Do it."}],
    }
    stopped = {"type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": "refusal"}
    yield case("refusal/messages", "en", messages, stopped, fail=["refusal"], unsure=["empty"])
