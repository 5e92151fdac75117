"""Numbers: does every number of a table or document answer occur in what was given?

Owns when a request counts as grounded (it brings a table or documents and asks about them) and which numbers are
excused: small counts, list marks, citations, and everything when the request asks to compute. Must not judge whether
the right number was picked. Called by `inspect`.
"""

import re
from typing import Final

from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.numerals import Numeral, numerals, rounds_to, worded
from gateway.core.quality.view import View

_MAX_ROUNDED: Final = 512
_WORDING_CHARS: Final = 4_096  # of beginning and end, where instructions stand
_MIN_CONTEXT_CHARS: Final = 40

_TABLE: Final = re.compile(
    r"^[ \t]*\|[^\n|]{0,256}\|[^\n]{0,1024}\n[ \t]*\|[ \t:|-]{3,512}$"  # Markdown: a row above a rule
    r"|^(?:[^,\n]{1,60},){2,8}[^\n]{1,512}\n(?:[^,\n]{1,60},){2}",  # CSV
    re.MULTILINE,
)
_DOCUMENTS: Final = re.compile(
    r"\b(?:only|based|according|strictly|solely|given|using|use)\b[^.\n]{0,40}\b(?:context|documents?|passages?|sources?|table"
    r"|text|data|information|report|article|excerpts?|records?|materials?)\b|^(?:context|documents?|sources?)\s*:"
    r"|\b(?:answer|respond|reply)\b[^.\n]{0,20}\b(?:from|with|using)\b[^.\n]{0,12}\b(?:context|documents?|passages?|sources?"
    r"|table|text|data|report|records?|materials?)\b|<(?:context|documents?|sources?|passage)\b"
    r"|(?:根据|依据|基于|按照|参考|只看|仅看)[^。\n]{0,12}(?:资料|文档|上下文|表格|表|材料|内容|数据|文章|报告|信息|段落)"
    r"|^(?:资料|文档|上下文|背景|材料)[：:]",
    re.MULTILINE | re.IGNORECASE,
)
_COMPUTE: Final = re.compile(
    r"\b(?:total|sum|add|average|mean|median|difference|differ|increase|decrease|growth|grow|grew|change[ds]?|ratio"
    r"|percent(?:age)?|proportion|how (?:many|much) (?:more|less|fewer|longer|older|days|years|months|hours)|compute"
    r"|calculate|multiply|divide|convert|estimate|forecast|predict|project|combined|altogether|remaining|variance)\b"
    r"|总|合计|平均|相差|差距|差额|增长|增加|减少|下降|比例|占比|百分|计算|一共|共有|多少倍|换算|估计|预测|多多少|少多少",
    re.IGNORECASE,
)
_LIST_MARK: Final = re.compile(r"(?:^|\n)[ \t>*_#-]*$")
_BEFORE_ORDINAL: Final = re.compile(
    r"(?:\b(?:step|option|item|point|part|phase|document|doc|source|passage|section|chapter|figure|table|row|column|note|page|tip"
    r"|no\.|number|reason|question|version|v)|第|步骤|选项|文档|资料|来源|图|表)\s*[#:.]?\s*$",
    re.IGNORECASE,
)
_CITATION_BEFORE: Final = re.compile(r"[\[【(（^†][^\]】)）\n]{0,24}$")
_CITATION_AFTER: Final = re.compile(r"^[^\[【(（\n]{0,24}[\]】]")


def check_numbers(view: View) -> Finding:
    """Fail when the answer to a question about given material holds a number that the material does not."""
    asked = view.asked
    if not _grounded(asked.context) or view.choice.tool_calls:
        return absent(Check.NUMBERS, "the request brings no table or documents to answer from")
    end = len(view.prose.rstrip()) if view.cut else len(view.prose) + 1  # a number at a cut may be half of one
    judged = [number for number in numerals(view.prose) if number.end < end and not _excused(view.prose, number)]
    if not judged:
        return absent(Check.NUMBERS, "the answer holds no number to judge")
    if asked.context_cut:
        return skipped(Check.NUMBERS, "the context is longer than the checks read")
    stray = _first_stray(judged, asked.context)
    if stray is None:
        return passed(Check.NUMBERS, f"all {len(judged)} numbers occur in the given material")
    if _COMPUTE.search(asked.user[-2048:]):
        return skipped(Check.NUMBERS, "the request asks to compute, so new numbers may be right")
    return failed(Check.NUMBERS, "a number that the given material does not hold", start=stray.start, end=stray.end)


def _grounded(material: str) -> bool:
    """Whether the request brings a table or documents to answer from."""
    if len(material) < _MIN_CONTEXT_CHARS:
        return False
    ends = material if len(material) <= 2 * _WORDING_CHARS else material[:_WORDING_CHARS] + material[-_WORDING_CHARS:]
    return _TABLE.search(material) is not None or _DOCUMENTS.search(ends) is not None


def _first_stray(judged: list[Numeral], material: str) -> Numeral | None:
    """The first number that the material holds neither as it is, nor scaled, rounded or in words."""
    given: set[str] = set()
    decimals: list[str] = []
    for number in numerals(material):
        given |= number.values
        if "." in number.digits and len(decimals) < _MAX_ROUNDED:
            decimals.append(number.digits)
    words: set[str] | None = None
    for number in judged:
        if number.values & given or any(rounds_to(precise, number.digits) for precise in decimals):
            continue
        if words is None:
            words = set(worded(material))
        if not (number.values & words or _as_count(number, given)):
            return number
    return None


def _excused(text: str, number: Numeral) -> bool:
    """Small counts, list marks, ordinals of parts, and the numbers inside citations."""
    if number.small:
        return True
    before = text[max(number.start - 28, 0) : number.start]
    after = text[number.end : number.end + 28]
    if after[:1] in {".", ")", "、"} and _LIST_MARK.search(before if number.start > 28 else "\n" + before):
        return True
    if _BEFORE_ORDINAL.search(before):
        return True
    return _CITATION_BEFORE.search(before) is not None and _CITATION_AFTER.match(after) is not None


def _as_count(number: Numeral, given: set[str]) -> bool:
    """Whether a scale number is a given one, rounded or cut: 1.2 million for 1,204,000."""
    mantissa, _, power = number.scaled.partition("e")
    if not 2 <= len(mantissa) <= 40:
        return False
    for value in given:
        other, _, exponent = value.partition("e")
        extra = len(other) - len(mantissa)
        if extra > 0 and exponent and int(exponent) + extra == int(power):
            cut = other[: len(mantissa)]
            if mantissa in {cut, str(int(cut) + 1)}:
                return True
    return False
