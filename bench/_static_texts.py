"""The texts that the shipped token table is fitted on, cut from a corpus of free documentation or made of its words.

Three samples, each the same for the same corpus and seed: ``varied`` has the corpus's own sentences, titles and spans;
``queries`` has what people type: questions, keywords, claims, code, identifiers, and every word of the vocabulary in
some company; ``needs`` has longer descriptions of what somebody looks for, each about one passage.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["SHARES", "needs", "queries", "varied"]

Row = dict[str, Any]
Texts = list[str]

SHARES = {"sentence": 0.56, "span": 0.16, "question": 0.10, "title": 0.06, "word": 0.06, "passage": 0.06}
QUERIES = {
    "sentence": 330_000,
    "title": 60_000,
    "question": 120_000,
    "need": 70_000,
    "code": 110_000,
    "identifier": 50_000,
    "keywords": 110_000,
    "span": 60_000,
    "claim": 60_000,
    "vocabulary": 170_000,
    "replaced": 90_000,
}


def words(text: str) -> list[str]:
    return re.findall(r"\S+", text)


STOP = frozenset(
    words(
        "a an the of to in on at by for with from as is are was were be been being it its this that these those and or"
        " but not if then than so such which who whom whose what when where why how do does did done has have had"
        " having can could may might must shall should will would i you he she we they them their his her our your my"
        " me us also into onto over under about between through during after before above below up down out off again"
        " further once there here all any both each few more most other some no nor only own same too very s t just"
        " don now e.g i.e etc via per"
    )
)
NEED_STOP = STOP - {"s", "t", "e.g", "i.e"}
VERBS = words(
    "check get set convert create remove delete find read write print sort count parse replace split join add append"
    " compare calculate compute change load save open close list extract generate select filter match format display"
    " show return make use call run start stop test validate plot draw round reverse merge insert update copy move"
    " rename iterate loop download send receive encode decode encrypt compress normalize transform initialize define"
    " import export"
)
LANGUAGES = [
    "python",
    "python 3",
    *words(
        "java c++ c sql javascript bash linux rust php go pandas numpy postgres django git unix windows perl c# r matlab"
        " html css node regex json xml"
    ),
]
QUESTIONS = [
    "how to {}",
    "how do i {}",
    "how can i {} ?",
    "what is {}",
    "what is the {}?",
    "what are the {}",
    "why {}",
    "how does {} work",
    "difference between {} and {}",
    "{} vs {}",
    "best way to {}",
    "{} example",
    "{} not working",
    "is it possible to {}",
    "does {} {}?",
    "where is {} described",
    "what does {} do?",
    "when was {} introduced?",
    "who {}?",
    "which {} uses {}?",
    "how many {}?",
    "purpose of {}",
    "what is the purpose of {}?",
    "explain {}",
    "how is {} related to {}?",
    "what happens if {}?",
]
NEEDS = [
    "I am interested in {}",
    "I'm looking for articles on {}, particularly {}",
    "information about {}",
    "papers on {} and {}",
    "Any work on {}",
    "{}, {}, and {}",
    "Find all descriptions of {}",
    "discussion of {} as applied to {}",
    "I want articles that deal with {} in {}. I'm not interested in {}.",
    "{} algorithms",
    "survey of {}",
    "theory of {}",
    "Design and implementation of {}",
    "An algorithm for {}",
    "On the {} of {}",
    "A note on {}",
    "Methods for {} with applications to {}",
    "{} systems",
    "Performance evaluation of {}",
    "The use of {} in {}",
]
CODE = [
    "{L} {}",
    "{L} {}",
    "{} in {L}",
    "{} {L}",
    "{L} how to {}",
    "how to {} in {L}",
    "how to {} {L}",
    "{L} {V} {}",
    "{V} {} in {L}",
    "{V} {} {L}",
    "how to {V} {} in {L}",
    "{L} code to {V} {}",
    "{L} {V} {} from {}",
    "{L} {V} if {} is {}",
    "{V} {} to {} {L}",
    "{L} function to {V} {}",
]
LONG_NEEDS = [
    "I am looking for papers about {}. Of particular interest are {} and {}. Not relevant: {}.",
    "Find documents that describe {}, with emphasis on {}.",
    "What is known about {} and how does it relate to {}?",
    "I would like to know more about {}, especially {}.",
    "We are interested in {}, such as {}, {} or {}.",
    "I want to read about {} as it applies to {}. I would prefer {} to {}.",
    "Which publications treat {}? Both {} and {} count.",
    "Everything on {}, including {} and {}",
    "{}, {}, {}, {}",
    "{}; {}; {}",
    "{} in the context of {}",
    "the relation of {} to {}",
    "I'm interested in {}, though not in {}.",
    "Are there any descriptions of {} that also cover {}?",
    "Recent results on {} and their use for {}",
    "My question concerns {}. More precisely: {}",
    "a comparison of {} with {}",
    "Techniques for {} when {}",
    "{} for {}",
    "what are the effects of {} on {}?",
    "how does {} affect {}?",
    "does {} cause {}?",
    "{} is associated with {}",
    "{} reduces {}",
    "{} increases {} in {}",
    "is {} needed for {}?",
    "why does {} {}?",
    "which {} has {}?",
    "who {} {}?",
    "in what {} did {}?",
    "how many {} are {}?",
    "{} or {}?",
    "when should {} be {}?",
]
LEADS = ["I'm interested in ", "Information on ", "Articles about ", "Anything about ", "Please find "]


def read_jsonl(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSON Lines file, gzipped or not."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def sentences(text: str, ends: str = r"(?<=[.!?:;])\s+", least: int = 8, most: int = 400) -> Iterator[str]:
    """Split a passage at blank lines and sentence ends; white space collapsed."""
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in re.split(ends, " ".join(paragraph.split())):
            if least <= len(sentence) <= most:
                yield sentence


def in_words(sentence: str, share: float) -> bool:
    """Tell prose from tables, code and numbers."""
    return (
        len(re.findall(r"[a-z]{2,}", sentence)) >= 5
        and sum(c.isalpha() or c == " " for c in sentence) / len(sentence) > share
    )


# Varied.


def varied(corpus: Path, size: int, seed: int) -> Texts:
    """Draw ``size`` distinct texts of all kinds and languages, shuffled, no group over a twelfth of a kind."""
    rng = random.Random(seed)
    pools: dict[str, dict[str, list[str]]] = {kind: defaultdict(list) for kind in SHARES}
    counts: dict[str, int] = defaultdict(int)
    for row in read_jsonl(corpus):
        text, group = row["text"], row["group"].split(":")[0]
        group = f"{group}:{row['lang'][:2]}" if row["lang"][:2] != "en" else group
        title = " ".join((row["title"] or "").split())
        pools["passage"][group].append(" ".join(text.split())[:900])
        if title:
            pools["title"][group].append(title)
            pools["question"][group].append(_question(title, rng))
        for word in re.findall(r"[^\W\d_]{3,24}", text):
            counts[word.lower()] += 1
        for sentence in sentences(text, r"(?<=[.!?:;])\s+|(?<=[。！？])"):
            pools["sentence"][group].append(sentence)
            parts = sentence.split()
            if sentence.endswith("?"):
                pools["question"][group].append(sentence)
            if len(parts) > 4:
                start = rng.randrange(len(parts) - 2)
                span = " ".join(parts[start : start + rng.randint(2, 9)]).strip(" ,.;:()[]")
                pools["span"][group].append(span)
                if rng.random() < 0.25:
                    pools["question"][group].append(_question(span, rng))
    pools["word"][""] = sorted(counts, key=lambda word: (-counts[word], word))[: int(size * SHARES["word"])]
    seen: set[str] = set()
    chosen: list[str] = []
    for kind, share in SHARES.items():
        want, cap = int(size * share), max(1, int(size * share / (1 if kind == "word" else 12)))
        candidates = [t for group in sorted(pools[kind]) for t in _draw(pools[kind][group], cap, rng)]
        rng.shuffle(candidates)
        for text in candidates:
            key = text.lower()
            if want and key not in seen and text:
                seen.add(key)
                chosen.append(text)
                want -= 1
    rng.shuffle(chosen)
    return chosen


def _draw(items: Sequence[str], most: int, rng: random.Random) -> list[str]:
    distinct = list(dict.fromkeys(items))
    return rng.sample(distinct, min(most, len(distinct)))


def _question(span: str, rng: random.Random) -> str:
    forms = (
        "what is {}?",
        "how to {}",
        "how do I {}?",
        "what does {} do?",
        "why {}?",
        "{}?",
        "where is {} described",
    )
    return rng.choice(forms).format(span)


# Queries.


def queries(corpus: Path, vocabulary: Sequence[str], size: int, seed: int) -> Texts:
    """Draw ``size`` distinct English texts as they are typed, shuffled; at most 1.2 million."""
    return _Queries(corpus, vocabulary, seed).draw(size)


class _Queries:
    """Makers of one text each, over the pools of a corpus."""

    def __init__(self, corpus: Path, vocabulary: Sequence[str], seed: int) -> None:
        self.rng = random.Random(seed)
        english = [row for row in list(read_jsonl(corpus)) if row["lang"].startswith("en")]
        self.rng.shuffle(english)
        by_group: dict[str, list[str]] = defaultdict(list)
        titles: set[str] = set()
        self.counts: Counter[str] = Counter()
        for row in english:
            group = row["group"].split(":")[0]
            group = "rfc" if group.startswith("rfc") else group
            for sentence in sentences(row["text"]):
                by_group[group].append(sentence)
            if row["title"]:
                titles.add(" ".join(row["title"].split()))
            titles.update(heading.strip() for heading in re.findall(r"^#+ (.{3,80})$", row["text"], re.M))
            self.counts.update(re.findall(r"[A-Za-z][A-Za-z0-9_+#.-]{1,28}", row["text"]))
        most = {"rfc": 170_000}
        self.pool = [
            sentence
            for group, found in by_group.items()
            for sentence in list(dict.fromkeys(found))[: most.get(group, 60_000)]
        ]
        self.rng.shuffle(self.pool)
        self.titles = sorted(titles)
        self.rng.shuffle(self.titles)
        self.prose = [sentence for sentence in self.pool if in_words(sentence, 0.85)]
        self.vocabulary = [token for token in vocabulary if re.fullmatch(r"[a-z]{2,}", token)]
        self.forms = [word for word, count in self.counts.items() if count >= 3]
        rarely = [1 / (30 + self.counts.get(word, 0)) for word in self.vocabulary]
        self.rare = iter(self.rng.choices(self.vocabulary, weights=rarely, k=600_000))

    def draw(self, size: int) -> Texts:
        """Make every kind, and return the first of all, shuffled."""
        pool, titles = iter(self.pool), iter(self.titles)
        makers: dict[str, Callable[[], str | None]] = {
            "sentence": lambda: next(pool, None),
            "title": lambda: next(titles, None),
            "question": lambda: self.fill(self.rng.choice(QUESTIONS)),
            "need": lambda: self.fill(self.rng.choice(NEEDS)),
            "code": self.code,
            "identifier": self.identifier,
            "keywords": self.keywords,
            "span": lambda: self.lower(self.span(self.rng.choice(self.prose)) or ""),
            "claim": self.claim,
            "vocabulary": self.company,
            "replaced": self.replaced,
        }
        seen: set[str] = set()
        made: list[str] = []
        for kind, make in makers.items():
            want = len(self.titles) if kind == "title" else QUERIES[kind]
            got = tries = 0
            while got < want and tries < 3 * want:
                tries += 1
                text = make()
                if text and 1 < len(text) <= 400 and text not in seen:
                    seen.add(text)
                    made.append(text)
                    got += 1
        order = list(range(len(made)))
        self.rng.shuffle(order)
        return [made[place] for place in order[:size]]

    def lower(self, text: str) -> str:
        return text.lower() if self.rng.random() < 0.7 else text

    def bare(self, sentence: str, least: int, most: int) -> list[str] | None:
        """Return neighbouring words that bear meaning."""
        found = [word.strip(".,;:!?()[]{}\"'`<>*|") for word in sentence.split()]
        found = [word for word in found if word and word.lower() not in STOP and len(word) < 30]
        if len(found) < least:
            return None
        count = min(len(found), self.rng.randint(least, most))
        start = self.rng.randrange(len(found) - count + 1)
        return found[start : start + count]

    def span(self, sentence: str) -> str | None:
        found = sentence.split()
        if len(found) < 4:
            return None
        count = self.rng.randint(2, min(8, len(found) - 1))
        start = self.rng.randrange(len(found) - count)
        return " ".join(found[start : start + count]).strip(' ,.;:()[]"')

    def phrase(self) -> str:
        kind = self.rng.random()
        if kind < 0.3:
            return " ".join(self.bare(self.rng.choice(self.prose), 1, 4) or ["data"])
        if kind < 0.65:
            return self.span(self.rng.choice(self.prose)) or "data"
        if kind < 0.75:
            return self.rng.choice(self.titles)[:80]
        if kind < 0.9:
            return " ".join(self.bare(self.rng.choice(self.pool), 1, 3) or ["data"])
        return self.rng.choice(self.vocabulary)

    def fill(self, form: str) -> str:
        return self.lower(re.sub(r"\{\}", lambda _: self.phrase(), form))

    def code(self) -> str:
        form = self.rng.choice(CODE)
        form = form.replace("{L}", "python" if self.rng.random() < 0.5 else self.rng.choice(LANGUAGES))
        form = form.replace("{V}", self.rng.choice(VERBS))

        def some(_: object) -> str:
            return " ".join(self.bare(self.rng.choice(self.pool), 1, 3) or ["list"])

        return self.lower(re.sub(r"\{\}", some, form))

    def identifier(self) -> str:
        kind = self.rng.random()
        one = self.rng.choice(self.forms)
        if kind < 0.3:
            return one
        verb, other = self.rng.choice(VERBS), self.rng.choice(self.forms)
        return self.rng.choice(
            [
                f"{verb}_{other}",
                f"def {verb}_{other}(self)",
                f"{verb} {one}",
                f"{one} {other}",
                f"{one}.{verb}({other})",
                f"{verb}{other.title()}",
            ]
        )

    def keywords(self) -> str | None:
        found = self.bare(self.rng.choice(self.prose), 2, 7)
        if not found:
            return None
        if self.rng.random() < 0.3:
            self.rng.shuffle(found)
        return self.lower(" ".join(found))

    def claim(self) -> str:
        sentence = self.rng.choice(self.prose)
        found = sentence.split()
        if len(found) <= 6:
            return sentence
        return " ".join(found[: self.rng.randint(5, 16)]).rstrip(",;:") + "."

    def company(self) -> str:
        """Put a word that the corpus has seldom, or never, beside others."""
        kind, count = self.rng.random(), self.rng.choice([1, 2, 2, 3, 3, 4, 5])
        rare = max(1, count // 2)
        found = [next(self.rare) for _ in range(rare)]
        found += [
            self.rng.choice(self.forms) if self.rng.random() < 0.5 else self.rng.choice(self.vocabulary)
            for _ in range(count - rare)
        ]
        self.rng.shuffle(found)
        return (
            self.fill(self.rng.choice(QUESTIONS)).replace("data", found[0]) if kind < 0.1 else " ".join(found)
        )

    def replaced(self) -> str:
        """Put rare words into the places of a sentence's own."""
        found = self.rng.choice(self.prose).split()[:30]
        places = [
            place
            for place, word in enumerate(found)
            if word.lower().isalpha() and word.lower() not in STOP and len(word) > 3
        ]
        for place in self.rng.sample(places, min(len(places), self.rng.randint(1, 3))):
            found[place] = next(self.rare)
        return " ".join(found)


# Needs.


def needs(corpus: Path, size: int, seed: int) -> Texts:
    """Draw ``size`` distinct English descriptions of what somebody looks for, each of one passage's words."""
    rng = random.Random(seed)
    by_group: dict[str, list[Row]] = {}
    for row in read_jsonl(corpus):
        if row["lang"].startswith("en"):
            group = row["group"].split(":")[0]
            by_group.setdefault("rfc" if group.startswith("rfc") else group, []).append(row)
    groups = sorted(by_group)
    weights = [min(len(by_group[group]), 6_000) ** 0.75 for group in groups]
    texts: dict[str, None] = {}
    while len(texts) < size:
        row = rng.choice(by_group[rng.choices(groups, weights)[0]])
        prose = [s for s in sentences(row["text"], least=20, most=300) if in_words(s, 0.8)]
        if not prose:
            continue
        text = _need(prose, rng)
        text = text if rng.random() < 0.6 else text.lower()
        texts[text[:500]] = None
    return list(texts)


def _need(prose: Sequence[str], rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.62:
        return re.sub(r"\{\}", lambda _: _phrase(prose, rng), rng.choice(LONG_NEEDS))
    if kind < 0.8:
        start = rng.randrange(len(prose))
        return " ".join(prose[start : start + 2])
    if kind < 0.9:
        lead, first, rest = rng.choice(LEADS), rng.choice(prose), rng.choice(prose)
        return lead + first[0].lower() + rest[1:]
    return " ".join(_phrase(prose, rng) for _ in range(rng.randint(2, 4)))


def _phrase(prose: Sequence[str], rng: random.Random) -> str:
    sentence = rng.choice(prose)
    found = sentence.split()
    if rng.random() < 0.5:
        bare = [word.strip(".,;:!?()[]{}\"'`<>*|") for word in found]
        bare = [word for word in bare if word and word.lower() not in NEED_STOP]
        if len(bare) < 2:
            return sentence
        count = min(len(bare), rng.choice([1, 2, 2, 3, 3, 4]))
        start = rng.randrange(len(bare) - count + 1)
        return " ".join(bare[start : start + count])
    count = min(len(found), rng.randint(3, 10))
    start = rng.randrange(len(found) - count + 1)
    return " ".join(found[start : start + count]).strip(' ,.;:()[]"')
