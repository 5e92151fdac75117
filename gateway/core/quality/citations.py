"""Citations: does every source that the answer points to exist in the given context?

Owns which sources a request offers ([1], 【2】, Document 3:, <doc id="A-7">, file and record ids) and which ones an
answer names. Judged only when the request offers sources. Must not judge whether the source says what it is cited
for. Called by `inspect`.
"""

import re
from collections.abc import Iterator
from typing import Final

from gateway.core.quality.finding import Check, Finding, absent, failed, passed, skipped
from gateway.core.quality.view import View

_MAX_NUMBER: Final = 999  # a larger number in brackets is a year or a quantity
_MAX_CITATIONS: Final = 512

_KIND: Final = (
    r"(?:doc(?:ument)?|source|passage|context|chunk|ref(?:erence)?|snippet|article|excerpt|result|item|file|paragraph"
    r"|section)"
)
_ZH_KIND: Final = r"(?:文档|资料|来源|文献|文章|段落|片段|材料|参考|引用)"
_OFFERED: Final = re.compile(
    rf"""^[ \t>*#-]*(?:\[\^?(?:{_KIND}\s*[#:]?\s*)?(?P<square>\d{{1,3}})\]"""
    rf"""|[【〔](?:{_ZH_KIND})?(?P<lens>\d{{1,3}})[】〕]"""
    rf"""|(?:{_KIND})\s*[#:]?\s*(?P<word>\d{{1,3}})\b|{_ZH_KIND}\s*(?P<zh>\d{{1,3}}))"""
    rf"""|<(?:{_KIND})\b[^>\n]{{0,80}}?\b(?:id|index|number|n)\s*=\s*["']?(?P<tag>[\w.:-]{{1,64}})"""
    rf"""|["'](?:{_KIND}_?)?(?:id|index)["']\s*:\s*["']?(?P<field>[\w.:-]{{1,64}})""",
    re.MULTILINE | re.IGNORECASE,
)
_LISTED: Final = re.compile(r"^[ \t]*(\d{1,3})[.)、：:]\s*\S", re.MULTILINE)
_CITING: Final = re.compile(r"\bcit(?:e|ing|ation)|\bsources?\b|\breferences?\b|引用|标注|来源|出处", re.IGNORECASE)
_NAMED_ID: Final = re.compile(r"\[([A-Za-z][A-Za-z0-9]{0,15}(?:[-_.:/][A-Za-z0-9]{1,32}){1,4})\]")
_CITED: Final = re.compile(
    rf"""\[\^?(?:{_KIND}s?\s*[#:]?\s*)?"""
    rf"""(?P<square>\d{{1,3}}(?:\s*(?:,|;|-|–|、|，|and|&)\s*(?:{_KIND}\s*)?\d{{1,3}}){{0,12}})\](?!\(|:)"""
    rf"""|[【〔](?:{_ZH_KIND})?(?P<lens>\d{{1,3}}(?:\s*[,、，-]\s*\d{{1,3}}){{0,12}})(?:[:†][^】〕]{{0,40}})?[】〕]"""
    rf"""|[(（](?:see |cf\. )?(?:{_KIND}s?\s*[#:]?\s*(?P<round>\d{{1,3}}(?:\s*(?:,|-|and|&)\s*\d{{1,3}}){{0,8}})"""
    rf"""|{_ZH_KIND}\s*(?P<zh>\d{{1,3}}(?:\s*[,、，-]\s*\d{{1,3}}){{0,8}}))[)）]""",
    re.IGNORECASE,
)
_BRACKET: Final = re.compile(r"[\[【〔(（]")
_PART: Final = re.compile(r"\d{1,3}")
_RANGE: Final = re.compile(r"(\d{1,3})\s*[-–]\s*(\d{1,3})")


def check_citations(view: View) -> Finding:
    """Fail when the answer cites a source that the context does not hold."""
    if not _BRACKET.search(view.prose):
        return absent(Check.CITATIONS, "the answer cites nothing")
    numbers, names = _offered(view)
    if not numbers and not names:
        return absent(Check.CITATIONS, "the request offers no numbered or named sources")
    if view.asked.context_cut:
        return skipped(Check.CITATIONS, "the context is longer than the checks read")
    cited = 0
    for number, start, end in _cited_numbers(view.prose):
        if not numbers:
            break
        cited += 1
        if number not in numbers:
            return failed(Check.CITATIONS, "cites a source number that the context does not hold", start=start, end=end)
    shapes = {_shape(name) for name in names}
    for found in _NAMED_ID.finditer(view.prose):
        if _shape(found[1]) not in shapes:
            continue
        cited += 1
        if found[1].lower() not in names:
            detail = "cites a source id that the context does not hold"
            return failed(Check.CITATIONS, detail, start=found.start(), end=found.end())
    if not cited:
        return absent(Check.CITATIONS, "the answer cites nothing")
    return passed(Check.CITATIONS, f"all {cited} citations point to a given source")


def _offered(view: View) -> tuple[set[int], set[str]]:
    """Source numbers and source ids that the context holds."""
    context = view.asked.context
    numbers: set[int] = set()
    names: set[str] = set()
    for found in _OFFERED.finditer(context):
        name = next(value for value in found.groups() if value is not None)
        if name.isdigit():
            numbers.add(int(name))
        else:
            names.add(name.lower())
    names.update(found[1].lower() for found in _NAMED_ID.finditer(context))
    if not numbers and (_CITING.search(view.asked.user[-2048:]) or _CITING.search(view.asked.system[:4096])):
        numbers.update(int(found[1]) for found in _LISTED.finditer(context))
    return numbers, names


def _cited_numbers(prose: str) -> Iterator[tuple[int, int, int]]:
    """(source number, start, end) of each citation; ranges are spelled out."""
    for count, found in enumerate(_CITED.finditer(prose)):
        if count >= _MAX_CITATIONS:
            return
        body = next(value for value in found.groups() if value is not None)
        members = [int(part) for part in _PART.findall(body)]
        for low, high in _RANGE.findall(body):
            members.extend(range(int(low), min(int(high), int(low) + 50) + 1))
        for number in members:
            if 0 < number <= _MAX_NUMBER:
                yield number, found.start(), found.end()


def _shape(name: str) -> str:
    """The form of an id: letters, digits and separators, so that KB-12 and KB-99 are of one kind."""
    return re.sub(r"[a-z]+", "a", re.sub(r"\d+", "0", name.lower()))
