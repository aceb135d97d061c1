"""Serves the stage cite: checks, claim by claim, whether an answer says what the passages that it cites say.

By words alone, in any one language, with no model and no database: it sees the context that it is given and
nothing else, so it can't confirm what the caller may not read. Choosing passages is left to
:mod:`pgrag.pack`.

How it decides. A claim is a sentence, a list item or a row of a table. Its words are stemmed lightly and
weighted by how rare they are among the passages' sentences: ``w(t) = 1 + ln((N + 1) / (df(t) + 1))``. A
passage supports a claim if some window of at most three of its neighbouring sentences, with the passage's
title and headings, holds at least ``THRESHOLD`` of the claim's weight. Numbers and identifiers must occur
exactly, and the clause that fits the words around one best may not have another instead; and a clause of
the claim must be negated just where the clause that fits it best is. What fails in this keeps half of its
score.

``THRESHOLD`` was chosen on the part ``tune`` of ``tests/pgrag/cited_claims.jsonl`` (36 claims), as the
middle of the range with the best macro F1 (0.71 to 0.76), and checked on the part ``held`` (52 claims),
whose results were looked at once while the rules were made, so it is no clean hold-out. The figures are pinned in ``tests/pgrag/test_cite.py``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Literal

from pgrag.pack import Context, Passage

__all__ = ["THRESHOLD", "Claim", "Evidence", "Verdict", "Verification", "verify_citations"]

THRESHOLD = 0.735

Verdict = Literal["supported", "misattributed", "stitched", "unsupported", "uncited", "fabricated"]


@dataclass(frozen=True)
class Evidence:
    """Where a passage says it.

    Attributes:
        passage_id: The passage.
        start: Where the sentences start in ``Passage.content``, in characters from 0; add
            ``Passage.char_start`` for the place in the document's text.
        end: Where they end, exclusive.
        text: The sentences, as they are stored.
    """

    passage_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Claim:
    """Something that an answer states, and what came of checking it.

    Attributes:
        text: The statement as it stands in the answer, with its citations.
        start: Where it starts in the answer, in characters from 0.
        end: Where it ends, exclusive.
        cited: Ids that it cites, each once, in the order of the answer; a list item that cites nothing has
            those of the line that introduces the list.
        verdict: ``supported``: a cited passage says it. ``misattributed``: none does, another passage does.
            ``stitched``: only several passages together say it. ``unsupported``: they don't. ``uncited``: it
            cites nothing. ``fabricated``: it cites an id that the context lacks, whatever else it cites.
        supported_by: Ids of the passages that say it, best first: the cited ones alone where one of these
            does; for ``stitched`` those that say it together. What is uncited or fabricated may be supported
            all the same.
        score: 0 to 1: the share of the claim's weight in the best passage, or in all of ``supported_by``.
        evidence: Where the best of ``supported_by`` says it; None where no single passage does.
    """

    text: str
    start: int
    end: int
    cited: tuple[str, ...]
    verdict: Verdict
    supported_by: tuple[str, ...]
    score: float
    evidence: Evidence | None


@dataclass(frozen=True)
class Verification:
    """An answer's claims in their order; what states nothing (questions, greetings, code) is none of them."""

    claims: tuple[Claim, ...]

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many claims have each verdict; all six are there."""
        found = [claim.verdict for claim in self.claims]
        return {verdict: found.count(verdict) for verdict in _VERDICTS}

    @property
    def ok(self) -> bool:
        """Whether every claim is supported by a passage that it cites; true for an answer without claims."""
        return all(claim.verdict == "supported" for claim in self.claims)


def verify_citations(answer: str, context: Context) -> Verification:
    """Check what an answer says against the passages that it cites.

    Args:
        answer: What a generator wrote, plain or Markdown. Citations are ``[P1]``, ``[P1, P3]``, ``[P1][P2]``
            or ``[P1-P3]``, before or after the full stop, or before the sentence; ``[12]`` is text.
        context: What the generator was given.

    Returns:
        A verdict a claim. Numbers, identifiers and negations are taken strictly and wording loosely, so a
        free paraphrase may be called unsupported; an answer in another language than its sources will be.
    """
    sources = [
        _Source.of(passage) for passage in sorted(context.passages, key=lambda p: int(p.passage_id[1:]))
    ]
    weights = _Weights(sources)
    known = frozenset(source.passage.passage_id for source in sources)
    return Verification(
        tuple(_judge(statement, sources, weights) for statement in _statements(answer, known))
    )


_VERDICTS: tuple[Verdict, ...] = (
    "supported",
    "misattributed",
    "stitched",
    "unsupported",
    "uncited",
    "fabricated",
)
_LONGEST_WINDOW = 3
_MOST_STITCHED = 3
_NEAR_WORDS = 5
_LEAST_SHARE_OF_A_STITCH = 0.15
_MOST_IN_A_RANGE = 50
# How many characters around a full stop say whether it is one, and how many after it may be a sentence.
_GLANCE = 30
_LONGEST_LOOK = 1000

# Terms: what is compared.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HIDDEN = re.compile(
    "[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_CJK = "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_RUN = re.compile(
    rf"[{_CJK}]+|[+-]?(?<![\w])\d{{1,3}}(?:[,'’\u00a0\u202f]\d{{3}})+(?:\.\d+)?(?![\w])"
    rf"|(?<!\w)/?(?:(?![{_CJK}])\w)+(?:(?:[-.:/@&#]+|['’]|(?<=\d),(?=\d{{1,2}}(?![\w,])))(?:(?![{_CJK}])\w)+)*(?:\+\+|#)?"
)
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?$")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:[,'’\u00a0\u202f]\d{3})+(?:\.\d+)?$")
_WITH_UNIT = re.compile(r"(\d+(?:[.,]\d+)?)-?([^\W\d_]{1,4}|[^\W\d_]{5,})$")
_NUMBER_WORDS = {
    word: str(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split(), 2)
} | {"twice": "2", "thrice": "3", "zweimal": "2", "dreimal": "3", "twenty": "20", "thirty": "30"}
_NEGATIONS = _words("""
    not no never none nor neither without cannot nobody nothing forbidden prohibited refused refuse
    nicht kein keine keinen keinem keiner keines nie niemals ohne niemand nichts verboten ne pas
    jamais sans aucun aucune interdit
    """)
_STOP = _words("""
    a about after again all also although an and any are as at be because been before being both but
    by can could did do does doing done each either else for from get gets had has have having he
    her here him his how i if in into is it its itself just may me might more most must my need
    needs now of off on once one only or other our out over own per rather same shall she should
    since so some such than that the their them then there these they this those to too under until
    up us very was we were what when where which while who whom whose why will with would you your
    aber als am an auch auf aus bei bis da das dass dem den der des die dies diese dieser dieses
    durch ein eine einem einen einer eines er es für hat im in ist kann man mit muss nach noch nur
    oder sein sich sie sind so um und vom von vor war was wenn werden wie wird zu zum zur au aux
    avec ce ces cette dans de des du elle en est et il la le les leur ou par pour que qui sa se ses
    son sont sur un une
    """)
_SUFFIXES = (
    "ations",
    "ation",
    "ating",
    "ators",
    "ator",
    "ated",
    "ates",
    "ate",
    "ities",
    "ity",
    "ments",
    "ment",
    "ness",
    "ings",
    "ing",
    "ions",
    "ion",
    "able",
    "ible",
    "ally",
    "als",
    "al",
    "ers",
    "er",
    "ors",
    "or",
    "eds",
    "ed",
    "ies",
    "es",
    "en",
    "em",
    "ern",
    "e",
    "y",
    "s",
    "n",
)
_CLAUSE = re.compile(
    r"[;:—–()]|,(?!\d)|\b(?:and|but|while|whereas|unless|except|although|und|aber|sondern|et|mais)\b|\n",
    re.I,
)


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    """Cut endings until none is left or three letters are; crude, but the same for both sides."""
    word = word.removesuffix("'s").removesuffix("’s")
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    cut = True
    while cut:
        cut = False
        for suffix in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                word, cut = word[: -len(suffix)], True
                break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word


def _number(written: str) -> str:
    """Write a number in one way: ``1,000`` as ``1000``, ``1,50`` as ``1.5``, ``05`` as ``5``."""
    sign = "-" if written.startswith("-") else ""
    written = written.lstrip("+-")
    if _THOUSANDS.match(written):
        written = re.sub("[,'’\u00a0\u202f]", "", written)
    whole, _, rest = written.replace(",", ".").partition(".")
    rest = rest.rstrip("0")
    return sign + (whole.lstrip("0") or "0") + (f".{rest}" if rest else "")


@dataclass(frozen=True)
class _Terms:
    """What a piece of text says, for comparison.

    Attributes:
        words: Stems of its content words.
        exact: Numbers (``=45``) and identifiers (``e-4021``), which have no near match.
        negated: Whether it says no.
    """

    words: frozenset[str]
    exact: frozenset[str]
    negated: bool

    @staticmethod
    def of(text: str) -> _Terms:
        words: set[str] = set()
        exact: set[str] = set()
        negated = False
        text = unicodedata.normalize("NFKC", text)
        text = re.sub(
            r"\b(?:not|no) (only|later than|more than|less than|fewer than)\b", r"\1", text, flags=re.I
        )
        for match in _RUN.finditer(text):
            negated |= _add_terms(match[0], words, exact)
        return _Terms(frozenset(words), frozenset(exact), negated)

    @cached_property
    def all(self) -> frozenset[str]:
        """Words and exact terms together."""
        return self.words | self.exact


def _add_terms(run: str, words: set[str], exact: set[str]) -> bool:
    """Add what one run of characters stands for, and tell whether it says no."""
    lower = run.lower()
    if re.match(f"[{_CJK}]", run):
        words.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        return False
    if _NUMBER.match(lower) or _THOUSANDS.match(lower):
        exact.add("=" + _number(lower))
        return False
    if unit := _WITH_UNIT.match(lower):
        exact.add("=" + _number(unit[1]))
        words.add(_stem(unit[2]))
        return False
    if any(character.isdigit() for character in lower):
        parts = re.split(r"[-/]", lower)
        if all(_NUMBER.match(part) for part in parts):
            exact.update("=" + _number(part) for part in parts)
        else:
            exact.add(re.sub(r"^v(?=\d)", "", lower))
        return False
    if "_" in lower or re.search(r"[:/@#]|\w\.\w|\+\+$|#$", lower):
        exact.add(lower)
        exact.update(part for part in re.split(r"[/:@#]+", lower) if "_" in part or "." in part)
        return False
    says_no = False
    for word in re.split(r"[-.&]+", lower):
        if word in _NEGATIONS or re.search(r"n['’]t$", word):
            says_no = True
        elif word in _NUMBER_WORDS:
            exact.add("=" + _NUMBER_WORDS[word])
        elif word and word not in _STOP and (len(word) > 1 or not word.isascii()):
            words.add(_stem(word))
    return says_no


# Sentences, of answers and of passages.

_CITATION = r"[\[【]\s*[Pp]\d+(?:\s*(?:,|;|&|and|und|-|–)\s*[Pp]\d+)*\s*[\]】]"
_CITATIONS = re.compile(_CITATION)
_SENTENCE_END = re.compile(
    r"(?P<stop>[.!?…]+[\"'”’»)*_]*|[。！？]+[」』”]?)"
    rf"(?P<cited>(?:[ \t]*{_CITATION})*)"
    r"(?P<next>\s+|$|(?<=[。！？」』”\]】])(?=\S))"
)
_ABBREVIATIONS = _words("""
    e.g i.e etc cf vs approx dr mr mrs ms prof st no nr nos fig sec sect art ch vol pp p ed eds inc
    ltd co corp dept est max min incl excl resp u.s u.k a.m p.m z.b d.h u.a bzw ca ggf inkl evtl abs
    vgl str tel usw bspw jan feb mar apr jun jul aug sep sept oct nov dec m mme mlle env av
    """)
_MONTHS = re.compile(
    r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Quartal|Etage|Stock)\b"
)
_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_ITEM = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:[-*+•]|\d{1,3}[.)]|\([a-z0-9]\)|[a-z]\))[ \t]+")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+")
_RULE = re.compile(r"^[ \t]*(?:\|?[ \t]*:?-{2,}:?[ \t]*)+\|?[ \t]*$|^[ \t]*(?:[-*_][ \t]*){3,}$")


@dataclass(frozen=True)
class _Block:
    """A span of text that sentences don't cross: a paragraph, a list item, a table row or a heading."""

    start: int
    end: int
    kind: Literal["text", "item", "row", "heading"]


def _blocks(text: str) -> Iterator[_Block]:
    """Find the blocks of a text; fenced code and rules are none."""
    fence = ""
    open_block: _Block | None = None
    offset = 0
    for line in text.splitlines(keepends=True):
        start, offset = offset, offset + len(line)
        end = start + len(line.rstrip())
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
            kind = None
        elif fence or end == start or _RULE.match(line):
            kind = None
        elif _HEADING.match(line):
            kind = "heading"
        elif line.lstrip().startswith("|"):
            kind = "row"
        elif _ITEM.match(line):
            kind = "item"
        else:
            kind = "text"
        if open_block and kind == "text" and open_block.kind in ("text", "item"):
            open_block = _Block(open_block.start, end, open_block.kind)
            continue
        if open_block:
            yield open_block
        open_block = _Block(start, end, kind) if kind else None  # type: ignore[arg-type]
    if open_block:
        yield open_block


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a block into sentences, each with the citations behind its full stop; spans in ``text``."""
    begin = start
    code = [match.span() for match in re.finditer(r"`[^`\n]+`", text[start:end])]
    for match in _SENTENCE_END.finditer(text, start, end):
        at = match.start() - start
        if any(first <= at < last for first, last in code) or not _is_end(text, begin, match, end):
            continue
        stop = match.end("cited")
        if (
            match["cited"]
            and match["cited"].lstrip() != match["cited"]
            and _opens_next(text, begin, match, end)
        ):
            stop = match.end("stop")
        yield begin, stop
        begin = stop
    if text[begin:end].strip():
        yield begin, end


def _is_end(text: str, begin: int, match: re.Match[str], end: int) -> bool:
    """Tell a full stop from the point of an abbreviation, an initial or an ordinal."""
    if not match["stop"].startswith(".") or match["stop"].startswith(".."):
        return True
    rest = text[match.end() : min(end, match.end() + _GLANCE)]
    if not rest:
        return True
    if match["cited"]:
        return not rest[0].islower()
    word = re.search(r"[\w.]*$", text[max(begin, match.start() - _GLANCE) : match.start()])
    before = (word[0] if word else "").lower()
    if before in ("etc", "usw", "a.m", "p.m", "inc", "ltd", "co"):
        return not rest[0].islower()
    if before in _ABBREVIATIONS or (len(before) == 1 and before.isalpha()):
        return False
    if re.fullmatch(r"\d{1,2}", before) and (
        _MONTHS.match(rest) or not text[begin : match.start() - len(before)].strip()
    ):
        return False
    return not rest[0].islower()


def _opens_next(text: str, begin: int, match: re.Match[str], end: int) -> bool:
    """Tell citations that open the next sentence, as in "A [P1]. [P2] B.", from those that close this one."""
    rest = text[match.end() : min(end, match.end() + _LONGEST_LOOK)]
    following = _SENTENCE_END.search(rest)
    next_one = rest[: following.end("cited")] if following else rest
    return bool(
        _CITATIONS.search(text, begin, match.start()) and next_one.strip() and not _CITATIONS.search(next_one)
    )


# Statements: what the answer claims.

_SAYS_NOTHING = re.compile(
    r"""^(?:
        (?:hi|hello|hey|dear|good\ (?:morning|afternoon|evening)|hallo|bonjour|guten\ (?:tag|morgen))\b
            [^.]{0,40}
        |(?:thanks|thank\ you|sure|certainly|of\ course|sorry|apologies|great\ question
            |yes|no|okay|ok|ja|nein|oui|non)
            [\s,!.]*(?:thanks|thank\ you|sure|of\ course|you)?
        |(?:please\ )?(?:let\ me\ know|feel\ free\ to)\b.*
        |(?:i\ hope|i'm\ happy\ to|i\ am\ happy\ to|happy\ to|glad\ to)\b.*
        |here(?:\ is|\ are|'s)\b[^.]*:
        |(?:in\ summary|to\ summari[sz]e|in\ short|based\ on\ the\ (?:sources|passages|context|documents))
    )[\s.!:…,]*$""",
    re.I | re.X | re.S,
)
_SOURCES = r"(?:sources?|passages?|documents?|context|excerpts?|texts?|information|material)"
_REFUSAL = re.compile(
    rf"""(?:
        \b(?:the|these|those|none\ of\ the|provided|given|your|my)\ (?:\w+\ )?{_SOURCES}\ (?:\w+\ )?
            (?:(?:do\ not|don['’]t|does\ not|doesn['’]t)\ (?:\w+ly\ )?(?:say|mention|contain|state|specify|cover
                |answer|give|include|provide|address|describe|explain|tell|name|list|discuss|indicate)
            |(?:say|says|have|has)\ nothing|(?:contain|give)s?\ no\ (?:information|answer|mention))\b
        |\bnone\ of\ the\ (?:\w+\ )?{_SOURCES}\ (?:say|mention|contain|state|specify|cover|answer|explain)s?\b
        |\bi\ (?:can\ ?not|can['’]t|could\ not|couldn['’]t|do\ not|don['’]t|am\ unable\ to|am\ not\ able\ to)
            \ (?:find|know|answer|tell|say|have)\b
        |\b(?:is|are|was|were)\ not\ (?:mentioned|stated|specified|said|covered|given|answered)
            \ (?:in|by)\ (?:the|these|any|your)\ (?:\w+\ )?{_SOURCES}\b
        |\bthere\ is\ (?:no|not\ enough)\ information\b
        |\bdie\ (?:quellen|dokumente|textstellen)\ (?:sagen|enthalten|nennen)
            \ (?:dazu\ )?(?:nichts|nicht|keine)\b
        |\bles\ (?:sources|documents|passages)\ ne\b
    )""",
    re.I | re.X,
)
_CONTRAST = re.compile(r"(?:[,;]\s*|\s)(?:but|however|though|aber|jedoch|mais)\b", re.I)


@dataclass(frozen=True)
class _Statement:
    """A claim before it is judged; ``bare`` is its text without citations."""

    text: str
    start: int
    end: int
    cited: tuple[str, ...]
    bare: str


def _statements(answer: str, known: frozenset[str]) -> Iterator[_Statement]:
    """Find what an answer claims, and whatever else cites an id that isn't among the known ones."""
    inherited: tuple[str, ...] = ()
    previous: str = ""
    blocks = list(_blocks(answer))
    for index, block in enumerate(blocks):
        follows = blocks[index + 1].kind if index + 1 < len(blocks) else ""
        if block.kind != "item":
            inherited = ()
        is_header = block.kind == "row" and previous != "row" and follows == "row"
        previous = block.kind
        if is_header:
            continue
        mark = _ITEM.match(answer[block.start : block.end]) if block.kind == "item" else None
        for start, end in _sentences(answer, block.start + (mark.end() if mark else 0), block.end):
            statement = _statement(answer, start, end, inherited, is_heading=block.kind == "heading")
            if follows == "item" and end == block.end and statement.bare.rstrip(" *_").endswith(":"):
                inherited = statement.cited or inherited
                if not _exact_or_known(statement):
                    continue
            is_bare_heading = block.kind == "heading" and not statement.cited
            if _states_something(statement.bare, is_heading=is_bare_heading) or set(statement.cited) - known:
                yield statement


def _statement(
    answer: str, start: int, end: int, inherited: tuple[str, ...], *, is_heading: bool
) -> _Statement:
    while start < end and answer[start] in " \t\r\n>#|":
        start += 1
    while start < end and answer[end - 1] in " \t\r\n|":
        end -= 1
    text = answer[start:end]
    cited = tuple(dict.fromkeys(_cited_ids(text)))
    bare = re.sub(r"[ \t]+([.!?,;:])", r"\1", _CITATIONS.sub(" ", text)).strip()
    return _Statement(text, start, end, cited or (() if is_heading else inherited), bare)


def _cited_ids(text: str) -> Iterator[str]:
    for group in _CITATIONS.findall(text):
        for first, last in re.findall(r"[Pp](\d+)(?:\s*[-–]\s*[Pp](\d+))?", group):
            low, high = int(first), int(last or first)
            if low <= high < low + _MOST_IN_A_RANGE:
                yield from (f"P{number}" for number in range(low, high + 1))
            else:
                yield from (f"P{low}", f"P{high}")


def _exact_or_known(statement: _Statement) -> bool:
    """Whether a line that introduces a list states something itself: it has a number or an identifier."""
    return bool(_Terms.of(statement.bare).exact)


def _states_something(bare: str, *, is_heading: bool) -> bool:
    if is_heading or bare.rstrip("*_\"'”’») ").endswith(("?", "？")) or _SAYS_NOTHING.match(bare):
        return False
    return bool(_Terms.of(_without_refusal(bare)).all)


def _without_refusal(bare: str) -> str:
    """Take away "the sources do not say …", up to a "but"."""
    refusal = _REFUSAL.search(bare)
    if refusal is None:
        return bare
    contrast = _CONTRAST.search(bare, refusal.end())
    return bare[contrast.end() :] if contrast else ""


# Passages, and what they support.


@dataclass(frozen=True)
class _Piece:
    """A sentence of a passage; ``about`` is what its title, headings and table header say."""

    start: int
    end: int
    terms: _Terms
    about: frozenset[str]
    clauses: tuple[_Terms, ...]


@dataclass(frozen=True)
class _Source:
    """A passage, taken apart."""

    passage: Passage
    pieces: tuple[_Piece, ...]
    terms: frozenset[str]

    @staticmethod
    def of(passage: Passage) -> _Source:
        text, places = _visible(passage.content)
        about = _Terms.of(" ".join([passage.title or "", *passage.heading_path])).all
        pieces: list[_Piece] = []
        header: frozenset[str] = frozenset()
        previous = ""
        for block in _blocks_with_code(text):
            if block.kind == "row" and previous != "row":
                header = _Terms.of(text[block.start : block.end]).all
            if block.kind != "row":
                header = frozenset()
            previous = block.kind
            for start, end in _sentences(text, block.start, block.end):
                first, last = _trimmed(text, start, end)
                terms = _Terms.of(text[first:last])
                span = (places[first], places[last - 1] + 1)
                pieces.append(_Piece(*span, terms, about | header, _clauses(text[first:last])))
        return _Source(passage, tuple(pieces), about.union(*(piece.terms.all for piece in pieces)))


def _blocks_with_code(text: str) -> Iterator[_Block]:
    """The blocks of a passage, in which lines of code count as text."""
    yield from _blocks(re.sub(r"(?m)^([ \t]*)(```|~~~)", r"\1   ", text))


def _visible(content: str) -> tuple[str, Sequence[int]]:
    """The content without invisible characters, and where each character that is left stood."""
    if not _HIDDEN.search(content):
        return content, range(len(content))
    places = [place for place, character in enumerate(content) if not _HIDDEN.match(character)]
    return "".join(content[place] for place in places), places


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end - 1 and text[start].isspace():
        start += 1
    while start < end - 1 and text[end - 1].isspace():
        end -= 1
    return start, end


def _clauses(text: str) -> tuple[_Terms, ...]:
    return tuple(terms for terms in map(_Terms.of, _CLAUSE.split(text)) if terms.all)


@dataclass(frozen=True)
class _Said:
    """What a claim says: its terms, its clauses, and each exact term with the words around it."""

    terms: _Terms
    clauses: tuple[_Terms, ...]
    exact: tuple[tuple[str, frozenset[str]], ...]

    @staticmethod
    def of(text: str) -> _Said:
        exact: list[tuple[str, frozenset[str]]] = []
        for clause in _CLAUSE.split(text):
            runs = [_Terms.of(match[0]) for match in _RUN.finditer(clause)]
            for place, run in enumerate(runs):
                near = runs[max(0, place - _NEAR_WORDS) : place + _NEAR_WORDS + 1]
                around = frozenset[str]().union(*(terms.words for terms in near))
                exact.extend((term, around) for term in run.exact)
        return _Said(_Terms.of(text), _clauses(text), tuple(exact))


class _Weights:
    """How much a term counts: ``1 + ln((N + 1) / (df + 1))`` over the sentences of all passages."""

    def __init__(self, sources: Sequence[_Source]) -> None:
        self._sentences = 0
        self._found: dict[str, int] = {}
        for source in sources:
            for piece in source.pieces:
                self._sentences += 1
                for term in piece.terms.all | piece.about:
                    self._found[term] = self._found.get(term, 0) + 1

    def total(self, terms: Iterable[str]) -> float:
        return math.fsum(
            1 + math.log((self._sentences + 1) / (self._found.get(term, 0) + 1)) for term in terms
        )

    def share(self, terms: frozenset[str], within: frozenset[str]) -> float:
        """The share of the weight of ``terms`` that ``within`` holds, 0 to 1; 0 where there are none."""
        whole = self.total(terms)
        return self.total(terms & within) / whole if whole else 0.0


@dataclass(frozen=True)
class _Match:
    score: float
    pieces: tuple[_Piece, ...]


def _judge(statement: _Statement, sources: Sequence[_Source], weights: _Weights) -> Claim:
    bare = _without_refusal(statement.bare)
    claim = _Said.of(bare)
    best = {source.passage.passage_id: (source, _best_window(claim, source, weights)) for source in sources}
    order = sorted(best, key=lambda name: -best[name][1].score)
    supporting = [name for name in order if best[name][1].score >= THRESHOLD]
    cited_and_supporting = tuple(name for name in supporting if name in statement.cited)
    supported_by = cited_and_supporting or tuple(supporting)
    score = best[order[0]][1].score if order else 0.0
    verdict: Verdict
    if any(name not in best for name in statement.cited):
        verdict = "fabricated"
    elif not statement.cited:
        verdict = "uncited"
    elif cited_and_supporting:
        verdict = "supported"
    elif supporting:
        verdict = "misattributed"
    else:
        stitch = _stitch(claim, [name for name in order if name in statement.cited], best, weights)
        stitch = stitch or _stitch(claim, order, best, weights)
        verdict = "stitched" if stitch else "unsupported"
        if stitch:
            supported_by, score = stitch
    if cited_and_supporting:
        score = best[cited_and_supporting[0]][1].score
    evidence = None
    if supporting and supported_by:
        evidence = _evidence(*best[supported_by[0]])
    return Claim(
        statement.text,
        statement.start,
        statement.end,
        statement.cited,
        verdict,
        supported_by,
        round(score, 6),
        evidence,
    )


def _evidence(source: _Source, match: _Match) -> Evidence:
    start, end = match.pieces[0].start, match.pieces[-1].end
    return Evidence(source.passage.passage_id, start, end, source.passage.content[start:end])


def _best_window(claim: _Said, source: _Source, weights: _Weights) -> _Match:
    """The window that says most of the claim; of equally good ones the shortest, then the first."""
    best, best_rank = _Match(0.0, source.pieces[:1]), 0.0
    for size in range(1, min(_LONGEST_WINDOW, len(source.pieces)) + 1):
        for first in range(len(source.pieces) - size + 1):
            window = source.pieces[first : first + size]
            score = _score(claim, window, weights)
            rank = score - 0.03 * (size - 1)
            if rank > best_rank + 1e-9:
                best, best_rank = _Match(score, window), rank
    return best


def _score(claim: _Said, pieces: Sequence[_Piece], weights: _Weights) -> float:
    said = frozenset[str]().union(*(piece.terms.all | piece.about for piece in pieces))
    share = weights.share(claim.terms.all, said)
    if share == 0.0:
        return 0.0
    if not claim.terms.exact <= said or not _exact_fits(claim, pieces, weights):
        return share / 2
    return share if _polarity_fits(claim, pieces, weights) else share / 2


def _exact_fits(claim: _Said, pieces: Sequence[_Piece], weights: _Weights) -> bool:
    """Whether no clause that fits the words around an exact term best has another instead."""
    theirs = [clause for piece in pieces for clause in piece.clauses]
    for term, around in claim.exact:
        fit = [weights.share(around, their.words) for their in theirs]
        top = max(fit, default=0.0)
        nearest = [their for share, their in zip(fit, theirs, strict=True) if share >= top - 1e-9]
        if top > 0 and not any(term in their.exact for their in nearest):
            others = frozenset[str]().union(*(their.exact for their in nearest))
            if others - claim.terms.exact:
                return False
    return True


def _polarity_fits(claim: _Said, pieces: Sequence[_Piece], weights: _Weights) -> bool:
    """Whether each clause of the claim is negated just where what fits it best is."""
    theirs = [clause for piece in pieces for clause in piece.clauses]
    for clause in claim.clauses:
        if len(clause.all) < 2:
            continue
        fit = [weights.share(clause.all, their.all) for their in theirs]
        top = max(fit, default=0.0)
        if top > 0 and all(
            their.negated != clause.negated
            for share, their in zip(fit, theirs, strict=True)
            if share >= top - 1e-9
        ):
            return False
    return True


def _stitch(
    claim: _Said,
    names: Sequence[str],
    best: dict[str, tuple[_Source, _Match]],
    weights: _Weights,
) -> tuple[tuple[str, ...], float] | None:
    """The fewest passages, two or three, whose best windows say the claim together, each a part of it."""
    gains = {
        name: claim.terms.all & frozenset[str]().union(*(piece.terms.all for piece in best[name][1].pieces))
        for name in names
    }
    useful = sorted(names, key=lambda name: -weights.total(gains[name]))[:8]
    for size in range(2, _MOST_STITCHED + 1):
        found: list[tuple[float, tuple[str, ...]]] = []
        for chosen in combinations(useful, size):
            own = [
                gains[name] - frozenset[str]().union(*(gains[other] for other in chosen if other != name))
                for name in chosen
            ]
            if any(weights.share(claim.terms.all, part) < _LEAST_SHARE_OF_A_STITCH for part in own):
                continue
            pieces = [piece for name in chosen for piece in best[name][1].pieces]
            score = _score(claim, pieces, weights)
            if score >= THRESHOLD:
                found.append((score, chosen))
        if found:
            score, chosen = max(found, key=lambda each: each[0])
            return chosen, score
    return None
