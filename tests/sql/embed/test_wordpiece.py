"""WordPiece in SQL: the same tokens as the tokenizer, in every script."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgrag.embed import StaticEncoder

CORPUS = Path(__file__).parents[4] / "shared" / "data" / "scale" / "passages.jsonl.gz"
Connection = psycopg.Connection[tuple[Any, ...]]

# A sentence a script: pieces of these, cut anywhere and mixed with marks, are the sample.
SENTENCES = (
    "How do I rotate the API key of vault-7? See §4.2, or run foo_bar.py --force (std::vector<int>)!",
    "Supercalifragilistic kubernetes tokenizers; e.g. 0xdeadbeef, 192.168.0.1, a@b.example, C++/C#, $9.99…",
    "Größe, Straße, Übermäßig: die Kündigungsfrist beträgt „drei Monate“ – höchstens.",
    "L’été dernier, ça coûtait 12 € à Orléans ; où est l’œuvre ?",
    "¿Dónde está el año nuevo? ¡Aquí! Đặt lại mật khẩu của bạn.",
    "Как сбросить пароль, ёжик? Ключ № 5 — «истёк».",
    "Πώς αλλάζω τον κωδικό; ΟΔΟΣ ΟΔΥΣΣΕΥΣ, ὕδωρ ᾧ.",
    "איך מאפסים סיסמה? שָׁלוֹם־עולם",
    "كيف أعيد تعيين كلمة المرور؟ مُحَمَّد ـــ ٤٢",
    "पासवर्ड कैसे बदलें? क्षत्रिय।",
    "รีเซ็ตรหัสผ่านอย่างไร ๆ",
    "パスワードをリセットする方法は？ がぎぐ ﾊﾟｽﾜｰﾄﾞ「鍵」、ＡＢＣ１２３",
    "如何轮换密钥？旧密钥将于三十天后过期。𠀀",
    "비밀번호를 어떻게 재설정하나요? 한글",
    "İstanbul’da ışık; IĞDIR şifre. Ǆ ﬁ ﬀ ½ ² Ⅷ ℃",
    "Ամենայն ինչ։ ქართული ტექსტი, አማርኛ ፡ ጽሑፍ። தமிழ் తెలుగు বাংলা ગુજરાતી ਪੰਜਾਬੀ ខ្មែរ မြန်မာ ລາວ",
)
MARKS = (
    *(
        "\u200b",
        "\u00ad",
        "\ufeff",
        "\u2028",
        "\u3000",
        "\u00a0",
        "\u0301",
        "\u0300\u0323",
        "\u202e",
        "\ufffd",
    ),
    *(
        "\x07",
        "\x0b",
        "\x7f",
        "\x85",
        "\t",
        "\r\n",
        "😀",
        "☃",
        "½",
        "_",
        "`",
        "^",
        "~",
        "|",
        "\\",
        "#",
        "##ing",
    ),
    *("[MASK]", "[SEP]"),
)


def sample(size: int) -> list[str]:
    """Texts of one to sixty pieces, mixed from all scripts; the same each time."""
    rng = random.Random(20)
    texts = []
    for _ in range(size):
        pieces = []
        for _ in range(rng.choice((1, 2, 3, 5, 8, 60))):
            sentence = rng.choice(SENTENCES)
            start = rng.randrange(len(sentence))
            pieces.append(sentence[start : start + rng.randint(1, 30)])
            if rng.random() < 0.3:
                pieces.append(rng.choice(MARKS))
        texts.append("".join(rng.choice(("", " ")) + piece for piece in pieces))
    return texts


# Words of a script each, which queries are made of.
SCRIPTS = {
    "Latin": SENTENCES[0] + " " + SENTENCES[3],
    "Cyrillic": SENTENCES[5],
    "Greek": SENTENCES[6],
    "Hebrew": SENTENCES[7],
    "Arabic": SENTENCES[8],
    "Devanagari": SENTENCES[9],
    "Thai": SENTENCES[10],
    "Kana": SENTENCES[11],
    "Han": SENTENCES[12],
    "Hangul": SENTENCES[13],
    "Armenian": "Ամենայն ինչ։ Ինչպե՞ս փոխել գաղտնաբառը",
    "Georgian": "ქართული ტექსტი, როგორ შევცვალო პაროლი?",
}


def queries(script: str, count: int) -> list[str]:
    """Queries of one to eight words of a script, some cut short; the same each time."""
    rng = random.Random(script)
    words = SCRIPTS[script].split()
    made = [" ".join(rng.choices(words, k=rng.randint(1, 8))) for _ in range(count)]
    return [query[: rng.randint(1, len(query))] if rng.random() < 0.3 else query for query in made]


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder.shipped()


@pytest.fixture(scope="module")
def connection(hybrid_template: str, session_database: Callable[..., str]) -> Iterator[Connection]:
    """One database for the module: tokenising writes nothing."""
    with psycopg.connect(session_database(template=hybrid_template), autocommit=True) as connection:
        yield connection


def tokens(connection: Connection, texts: list[str]) -> list[dict[str, int]]:
    """Tokens and their counts by SQL, a dictionary a text."""
    rows = connection.execute(
        "select coalesce(("
        "   select jsonb_object_agg(p.token, p.n) from pgrag._wordpiece(u.text, s.space_id) as p"
        " ), '{}')"
        " from unnest(%s::text[]) with ordinality as u (text, place)"
        " inner join pgrag.space as s on s.name = 'minilm-static-2'"
        " order by u.place",
        (texts,),
    ).fetchall()
    return [row[0] for row in rows]


def by_tokenizer(encoder: StaticEncoder, texts: list[str]) -> list[dict[str, int]]:
    return [dict(Counter(e.tokens)) for e in encoder.tokenizer.encode_batch(texts, add_special_tokens=False)]


def test_a_mixed_sample_of_many_scripts_has_the_tokenizers_tokens(
    connection: Connection, encoder: StaticEncoder
) -> None:
    texts = sample(2_000)
    assert tokens(connection, texts) == by_tokenizer(encoder, texts)


@pytest.mark.parametrize("script", SCRIPTS)
def test_queries_in_each_of_twelve_scripts_have_the_tokenizers_tokens(
    connection: Connection, encoder: StaticEncoder, script: str
) -> None:
    texts = queries(script, 20)
    assert tokens(connection, texts) == by_tokenizer(encoder, texts)


@pytest.mark.skipif(not CORPUS.exists(), reason="../shared/data/scale is not beside the checkout")
def test_real_passages_in_many_languages_have_the_tokenizers_tokens(
    connection: Connection, encoder: StaticEncoder
) -> None:
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for number, line in enumerate(lines) if number % 86 == 0]
    assert tokens(connection, texts) == by_tokenizer(encoder, texts)


def test_every_character_is_read_as_by_the_tokenizer(connection: Connection, encoder: StaticEncoder) -> None:
    points = [p for p in range(1, 0x110000) if not 0xD800 <= p < 0xE000]
    rows = connection.execute(
        "select p, array_remove(string_to_array(pgrag._bert_words('a' || chr(p) || 'b'), ' '), '')"
        " from unnest(%s::int[]) as p",
        (points,),
    ).fetchall()
    bert = encoder.tokenizer
    differ = [
        point
        for point, words in rows
        if words
        != [
            w
            for w, _ in bert.pre_tokenizer.pre_tokenize_str(
                bert.normalizer.normalize_str("a" + chr(point) + "b")
            )
        ]
    ]
    # Letters and marks that came with Unicode 9 or later: server and tokenizer may know different ones.
    # None of them is in the vocabulary.
    vocabulary = {c for token, _, _ in encoder.token_rows() for c in token}
    assert len(differ) <= 400
    assert vocabulary.isdisjoint(map(chr, differ))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tokenizer", {"token": 1, "##izer": 1}),
        ("the cat, the hat", {"the": 2, "cat": 1, ",": 1, "hat": 1}),
        ("E-4021", {"e": 1, "-": 1, "402": 1, "##1": 1}),
        ("ÇA naïve", {"ca": 1, "naive": 1}),
        ("中文", {"中": 1, "文": 1}),
        ("[MASK]", {"[": 1, "mask": 1, "]": 1}),
        ("😀 key 😀", {"[UNK]": 2, "key": 1}),
        ("x" * 101, {"[UNK]": 1}),
        ("", {}),
        (" \n\t", {}),
    ],
)
def test_words_are_cut_by_the_longest_match_first(
    connection: Connection, text: str, expected: dict[str, int]
) -> None:
    assert tokens(connection, [text]) == [expected]


def test_a_word_of_one_hundred_characters_is_still_cut(
    connection: Connection, encoder: StaticEncoder
) -> None:
    assert sum(tokens(connection, ["x" * 100])[0].values()) == encoder.count_tokens("x" * 100) > 1


def test_no_text_gives_no_token(connection: Connection) -> None:
    assert connection.execute("select * from pgrag._wordpiece(null, 1)").fetchall() == []


def test_a_space_without_a_vocabulary_knows_no_word(connection: Connection) -> None:
    assert connection.execute("select * from pgrag._wordpiece('key', -1)").fetchall() == [("[UNK]", 1)]
