"""Refusals: the answer declines to do what was asked, on grounds of rules or of being a machine.

Owns the wordings, English and Chinese, and where they must stand. That the documents do not hold the answer is no
refusal, nor is sympathy or a caution before help. Must not judge whether refusing was right: rates of two pools are
compared. Called by `inspect`.
"""

import re
from typing import Final

from gateway.core.quality.finding import Check, Finding, absent, failed, passed
from gateway.core.quality.view import View

_HEAD_CHARS: Final = 320
_LONG_CHARS: Final = 900  # past this length an answer that opens with a refusal usually goes on to help

_DO: Final = (
    r"(?:help|assist|support|comply|fulfil|fulfill|do that|do this|provide|give|offer|create|write|generate|produce"
    r"|share|discuss|engage|participate|answer|process|complete|continue with|proceed|facilitate|explain how"
    r"|tell you how|show you how|walk you through|advise|make|translate|promote)"
)
_ENGLISH: Final = re.compile(
    r"\bI(?:['’]m| am) (?:\w+ )?(?:sorry|afraid)\b[^.\n]{0,40}"
    r"\b(?:I|we)(?: |['’]m |['’]re )(?:can(?:['’]t|not| not)|unable to|won['’]t|not able to|must decline)\b"
    r"(?! (?:find|see|locate|tell from|determine|identify any))"
    r"|\bI (?:can(?:['’]t|not| not)|won['’]t|will not|could not|must not|shouldn['’]t|should not)"
    rf" (?:be able to )?{_DO}\b"
    r"(?! enough| too highly| without)"
    r"|\bI(?:['’]m| am) (?:unable|not able|not allowed|not permitted|not comfortable|not programmed|not in a position)"
    rf" (?:to |with |in )?(?:{_DO}|sharing|providing|helping|discussing|creating|writing|engaging)"
    r"|\bI (?:must|have to|need to|will have to|respectfully) (?:respectfully |politely )?(?:decline|refuse)\b"
    r"|\b(?:it|this|that) (?:would be|is) (?:against my|not something I can|not something I['’]m able)"
    r"|\b(?:against|violates?) (?:my|our|the) "
    r"(?:guidelines|programming|policy|policies|ethical|principles|content policy)"
    r"|\bas an? (?:AI|artificial intelligence|language model)[^.\n]{0,80}"
    r"\b(?:can(?:['’]t|not)|unable|do not have the ability|don['’]t have the ability|not able)\b"
    r"|\bI do(?:n['’]t| not) (?:feel comfortable|provide|assist|help|engage|support|participate)\b",
    re.IGNORECASE,
)
_CHINESE: Final = re.compile(
    r"(?:抱歉|对不起|不好意思|很遗憾|非常遗憾)[^。！\n]{0,24}(?:无法|不能|不可以|没办法|没有办法|拒绝|不便)[^。，\n]{0,6}"
    r"(?:提供|协助|帮|回答|完成|满足|生成|撰写|编写|写|参与|讨论|执行|处理|透露|继续|答应|这样做|给出|翻译|支持|告诉)"
    r"|(?:我|本助手|作为[^。，,\n]{0,16}[，,]?\s?我?)(?:无法|不能|不可以|没办法|不便|不会|拒绝)"
    r"(?:为您|为你|给您|给你|向您|向你|对此|就此)?"
    r"(?:提供|协助|帮助|帮您|帮你|回答|完成|满足|生成|撰写|编写|参与|讨论|支持|执行|处理|透露)"
    r"|违反(?:了)?(?:我的|我们的|相关|使用)?[^。\n]{0,8}(?:准则|原则|政策|规定|规范|法律)[^。\n]{0,20}(?:无法|不能|拒绝)"
    r"|(?:恕我|我必须|我只能|我要)(?:拒绝|婉拒|无法|不能)",
)
_ABSTAINS: Final = re.compile(
    r"\b(?:documents?|context|sources?|passages?|text|information|table|data|materials?|records?)\b[^.\n]{0,60}"
    r"\b(?:do(?:es)? not|don['’]t|doesn['’]t|not|no)\b|\bnot (?:mentioned|stated|given|provided|specified|enough)\b"
    r"|(?:资料|文档|上下文|原文|文章|表格|数据|文中|信息)[^。\n]{0,20}(?:没有|未|不足|无)|未提及|没有提到|没有提供|信息不足",
    re.IGNORECASE,
)


def check_refusal(view: View) -> Finding:
    """Fail when the answer refuses: the API says so, or it opens with words of refusal and stays short."""
    choice = view.choice
    if choice.refusal or choice.finish_reason == "refusal":
        return failed(Check.REFUSAL, "the API marks the answer as a refusal", where="answer")
    if not view.text.strip():
        return absent(Check.REFUSAL, "no text")
    if choice.tool_calls:
        return passed(Check.REFUSAL, "a tool was called")
    head = view.prose[:_HEAD_CHARS]
    for pattern in (_ENGLISH, _CHINESE):
        hit = pattern.search(head)
        if hit is None or (len(choice.text) > _LONG_CHARS and hit.start() > 80) or _quoted(head, hit.start()):
            continue
        if _ABSTAINS.search(head):
            return passed(Check.REFUSAL, "says that the given material holds no answer, which is no refusal")
        return failed(Check.REFUSAL, "opens with words of refusal", start=hit.start(), end=hit.end())
    return passed(Check.REFUSAL, "no words of refusal at the beginning")


def _quoted(head: str, start: int) -> bool:
    """Whether the words stand in quotes: somebody else says them."""
    return head[:start].rstrip()[-1:] in {"'", '"', "\u2018", "\u201c", "\u300c", "\u300e"}
