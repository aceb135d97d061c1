"""Whoever types a name as people type it finds the text that says it, before texts that say parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A text, others that say something like it, and what people type who look for the text."""

    said: str
    others: tuple[str, ...]
    typed: tuple[str, ...]
    analyzer: str = "english"


CASES = {
    "part number": Case(
        "Replace the filter of model TS-999 every year.",
        ("Filter of model TS-998.", "Order 999 filters for a TS.", "Page 999.", "TS"),
        (
            "TS-999",
            "ts-999",
            "ts999",
            "TS999",
            "TS 999",
            "ts 999",
            "ts_999",
            "TS–999",
            "TS\u2011999",
            "ＴＳ－９９９",
        ),
    ),
    "part number, the number alone": Case(
        "Replace the filter of model TS-999 every year.",
        ("Filter of model TS-998.", "TS"),
        ("999", "filter 999"),
    ),
    "part number, its en dash": Case(
        "See TS–999.", ("999 of the TS", "TS-998"), ("TS-999", "ts999", "TS 999")
    ),
    "error code": Case(
        "The gateway shows E-4021 after a restart.",
        ("The gateway shows E-4012.", "4021 gateways of class E", "4021"),
        ("E-4021", "e4021", "E 4021", "error E-4021", "e_4021"),
    ),
    "Oracle code": Case(
        "ORA-00942: table or view does not exist",
        ("ORA-00943", "ORA and 00942"),
        ("ORA-00942", "ora00942", "ORA 00942", "ora_00942"),
    ),
    "version": Case(
        "Fixed in release 4.7.3 of the server.",
        ("Fixed in 3.7.4.", "Release 7.4.3 of the server.", "Of 4 servers 7 have 3.", "4.73"),
        ("4.7.3", "v4.7.3", "version 4.7.3", "4.7", "V4.7"),
    ),
    "version with a v": Case(
        "Upgrade to v2.10.1 at once.", ("Upgrade to v1.10.2.", "2 of 10 and 1"), ("v2.10.1", "2.10.1", "2.10")
    ),
    "C++": Case(
        "Bindings for C++ exist.",
        ("Bindings for C exist.", "Bindings for C# exist."),
        ("C++", "c++", "C++ bindings"),
    ),
    "C#": Case(
        "Bindings for C# exist.",
        ("Bindings for C exist.", "Bindings for C++ exist."),
        ("C#", "c#", "c# bindings"),
    ),
    ".NET": Case(
        "It runs on .NET everywhere.", ("A net to catch fish.", "example.net"), (".NET", ".net", ".NET runs")
    ),
    "file": Case(
        "Run foo_bar.py once a day.",
        ("Run foo once a day.", "bar.py", "The bar has py."),
        ("foo_bar.py", "FOO_BAR.PY", "foo_bar", "foobar", "foo-bar", "fooBar", "foo bar"),
    ),
    "qualified name": Case(
        "Prefer std::vector to arrays.",
        ("Prefer vector graphics, std says.", "std", "std::list"),
        ("std::vector", "std::vector<int>", "STD::VECTOR"),
    ),
    "qualified name, parts": Case("Prefer std::vector.", ("std::list", "std"), ("vector", "std vector")),
    "camel case": Case(
        "Call getUserById with a number.",
        ("The user can get a number.", "Call get.", "The id of a group."),
        ("getUserById", "getuserbyid", "get_user_by_id", "GetUserByID", "get-user-by-id", "user id get"),
    ),
    "camel case, one part": Case(
        "Call getUserById.", ("Call getGroupByName.",), ("user", "id", "get user by id")
    ),
    "camel case with digits": Case(
        "The class OAuth2Client does it.",
        ("auth", "A client of two."),
        ("OAuth2Client", "oauth2client", "oauth2 client", "oauth2_client"),
    ),
    "screaming case": Case(
        "Set MAX_RETRY_COUNT.",
        ("The max of all of them.", "Retry it once more, please.", "A count of everything."),
        ("max_retry_count", "maxRetryCount", "max retry", "MaxRetryCount"),
    ),
    "address and port": Case(
        "It listens on 10.0.0.1:8080 by default.",
        ("It listens on 10.0.0.2:8080.", "10 of 8080", "1.0.0.10"),
        ("10.0.0.1:8080", "10.0.0.1", "10.0.0.1 8080"),
    ),
    "address by its net": Case("The host 10.20.30.40.", ("40.30.20.10", "10 20 30"), ("10.20.30", "10.20")),
    "port": Case("It listens on 10.0.0.1:8080.", ("It listens on 10.0.0.1:8081.",), ("8080", ":8080")),
    "stock number": Case(
        "Units of SKU 12-345-A are out.",
        ("Units of SKU 12-345-B.", "12 units of 345.", "345-A", "SKU 12"),
        ("12-345-A", "SKU 12-345-A", "12345A", "12345a", "12_345_A", "12–345–a", "SKU 12345-A"),
    ),
    "hyphenated word": Case(
        "A state-of-the-art e-mail system.",
        ("The state of an art.", "Mail."),
        ("state-of-the-art", "email", "e-mail", "E–mail", "Email"),
    ),
    "hyphenated over lines": Case("The infor-\nmation desk", ("The desk",), ("information", "informations")),
    "prefix with a hyphen": Case(
        "We pre-process it.", ("We process it.",), ("preprocess", "pre-processing", "preprocessing")
    ),
    "e-mail address": Case(
        "Write to ana.silva@example.com for help.",
        ("Write to ana@other.com.", "Silva helps.", "com.example"),
        (
            "ana.silva@example.com",
            "ANA.SILVA@EXAMPLE.COM",
            "ana.silva",
            "example.com",
            "mailto:ana.silva@example.com",
            "ana silva",
        ),
    ),
    "e-mail link": Case(
        "<a href=mailto:ana@example.com>", ("ana", "example.org"), ("ana@example.com", "example.com")
    ),
    "path": Case(
        "See /usr/local/bin/rotate_keys.py for that.",
        ("The bin is local.", "Rotate the keys.", "/usr/bin/keys.py"),
        (
            "/usr/local/bin/rotate_keys.py",
            "rotate_keys.py",
            "rotate_keys",
            "rotatekeys",
            "bin/rotate_keys.py",
            "usr/local/bin/rotate_keys.py",
        ),
    ),
    "Windows path": Case(
        r"It is C:\Windows\System32\drivers.sys here.",
        ("Drivers of windows", "sys"),
        (r"C:\Windows\System32\drivers.sys", "drivers.sys", "system32"),
    ),
    "URL": Case(
        "Read https://www.example.com/docs/install.html?lang=en#top first.",
        ("Install the docs, for example.", "https://www.example.org/", "html"),
        (
            "https://www.example.com/docs/install.html",
            "http://www.example.com/docs/install.html",
            "www.example.com/docs/install.html",
            "https://www.example.com/docs/install.html?lang=en#top",
            "https://www.example.com/do*",
            "install.html",
            "www.example.com",
        ),
    ),
    "hexadecimal": Case(
        "It crashed with 0xDEADBEEF twice.",
        ("It crashed with dead beef.", "beef", "0xDEADBEAF"),
        ("0xDEADBEEF", "0xdeadbeef", "DEADBEEF", "deadbeef", "0XDEADBEEF"),
    ),
    "hexadecimal in small letters": Case("At 0xdeadbeef.", ("beef",), ("0xDEADBEEF", "DEADBEEF", "deadbeef")),
    "hexadecimal error": Case(
        "Error 80070005 means access denied.",
        ("Error 80070006.", "0x80004005"),
        ("80070005", "0x80070005", "0X80070005"),
    ),
    "hexadecimal error with its mark": Case(
        "It ended with 0x80070005.", ("It ended with 0x80070006.",), ("80070005", "0x80070005")
    ),
    "hash": Case(
        "Commit 3f2504e0a9c1 broke it.", ("Commit 3f2504e0a9c2.", "3f"), ("3f2504e0a9c1", "3F2504E0A9C1")
    ),
    "UUID": Case(
        "Order 3F2504E0-4F89-11D3-9A0C-0305E82C3301 failed.",
        ("Order 3F2504E0-4F89-11D3-9A0C-0305E82C3302.", "0305E82C3301"),
        ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "3F2504E04F8911D39A0C0305E82C3301"),
    ),
    "unit": Case("Take 500mg daily.", ("Take 50mg daily.", "500 g", "mg"), ("500mg", "500 mg", "500 MG")),
    "unit apart": Case(
        "Take 500 mg daily.", ("Take 50 mg daily.", "Take 500 g."), ("500mg", "500 mg", "500-mg")
    ),
    "thousands": Case("It costs 1,234,567 dollars.", ("234 dollars", "1 dollar"), ("1234567", "1,234,567")),
    "short slash": Case(
        "Its I/O is slow, and so is TCP/IP.",
        ("An ip of the machine over there", "The tcp of the machine over there", "o"),
        ("I/O", "io", "TCP/IP", "tcpip", "tcp ip"),
    ),
    "abbreviation": Case(
        "Made in the U.S.A. by AT&T.", ("Made at a t.", "u"), ("USA", "U.S.A.", "u.s.a.", "AT&T", "at&t")
    ),
    "ligature": Case("The ﬁle ofﬁce", ("The",), ("file", "office")),
    "full width": Case("Ｔｈｅ ｓｅｒｖｅｒ", ("The",), ("server", "ｓｅｒｖｅｒ")),
    "soft hyphen": Case("data\u00adbase", ("data", "base"), ("database", "data\u00adbase", "DATABASE")),
    "zero width": Case("data\u200dbase \ufeffserver\u2060s", ("data",), ("database", "servers")),
    "apostrophe": Case(
        "Ana’s keys don’t open O’Brien’s door",
        ("keys",),
        ("O'Brien", "obrien door", "OBrien", "Ana's", "Anaʼs"),
    ),
    "acute accents": Case(
        "Send your résumé to the café.",
        ("Resumption.",),
        ("resume", "résumés", "RÉSUMÉ", "cafe", "CAFÉ", "re\u0301sume\u0301"),
    ),
    "German": Case(
        "Die großen Häuser der Straße",
        ("Die Tür",),
        ("Haus", "Häuser", "hauser", "HÄUSER", "Strasse", "STRASSE", "straße", "groß", "gross", "GROSSE"),
        "german",
    ),
    "German in English text": Case(
        "The Straße of the Größe", ("The",), ("strasse", "Straße", "STRASSE", "grosse"), "english"
    ),
    "French": Case(
        "L’eau de l’élève a été répétée à l’école",
        ("Le chat",),
        ("eau", "l'eau", "L’eau", "eleve", "élèves", "ÉLÈVE", "ecole", "école", "repetee", "répéter"),
        "french",
    ),
    "Spanish": Case(
        "La canción del niño", ("El gato",), ("cancion", "canciones", "CANCIÓN", "niño", "niños"), "spanish"
    ),
    "Portuguese": Case(
        "A informação pública",
        ("O gato",),
        ("informacao", "informação", "informações", "INFORMAÇÃO", "publica", "públicas"),
        "portuguese",
    ),
    "Italian": Case(
        "La città è l’università",
        ("Il gatto",),
        ("citta", "città", "CITTÀ", "universita", "l'università"),
        "italian",
    ),
    "Catalan": Case(
        "La col·lecció gran",
        ("El gat",),
        ("col·lecció", "coŀlecció", "colleccio gran", "col·leccio"),
        "catalan",
    ),
    "Romanian": Case(
        "Informaţii despre situaţia oraşului",
        ("Pisica",),
        ("informații", "informaţii", "informatii", "situația", "orașului", "orasului"),
        "romanian",
    ),
    "Dutch": Case("De ideeën van één café", ("De kat",), ("ideeën", "ideeen", "café", "cafe"), "dutch"),
    "Danish": Case("Blåbær på øen", ("En kat",), ("blåbær", "BLÅBÆR", "øen", "ØEN"), "danish"),
    "Norwegian": Case("Blåbær på øya", ("En katt",), ("blåbær", "BLÅBÆR", "øya"), "norwegian"),
    "Swedish": Case(
        "Räksmörgås på café", ("En katt",), ("räksmörgås", "RÄKSMÖRGÅSAR", "cafe", "café"), "swedish"
    ),
    "Finnish": Case("Tietokantoja ja öljyä", ("Kissa",), ("öljy", "ÖLJYÄ"), "finnish"),
    "Hungarian": Case(
        "Adatbázisok és kérdések", ("A macska",), ("adatbázis", "ADATBÁZISOK", "kérdés"), "hungarian"
    ),
    "Estonian": Case("Raamatud ja küla", ("Kass",), ("raamat", "RAAMATUD", "küla", "KÜLAS"), "estonian"),
    "Lithuanian": Case("Duomenų bazės", ("Katė",), ("duomenų", "DUOMENŲ"), "lithuanian"),
    "Turkish": Case(
        "İstanbul’da ISPARTA kitapları",
        ("Bir kedi",),
        ("istanbul", "İSTANBUL", "Istanbul", "Isparta", "ısparta", "kitap", "kitaplar"),
        "turkish",
    ),
    "Turkish in English text": Case(
        "From İstanbul to Diyarbakır",
        ("From",),
        ("istanbul", "Istanbul", "İSTANBUL", "diyarbakir", "DIYARBAKIR"),
    ),
    "Irish": Case("Tá an leabharlann mór", ("Cat",), ("leabharlann", "mor", "mór"), "irish"),
    "Basque": Case("Liburutegiko liburuak", ("Katua",), ("liburuak", "LIBURUAK", "liburu"), "basque"),
    "Indonesian": Case(
        "Perpustakaan menyimpan buku-buku",
        ("Kucing",),
        ("buku", "bukunya", "perpustakaan", "menyimpan"),
        "indonesian",
    ),
    "Russian": Case(
        "Ёлки и серверы базы данных",
        ("Кошка",),
        ("ёлка", "елка", "ЁЛКИ", "Елки", "сервер", "СЕРВЕРА", "база данных"),
        "russian",
    ),
    "Russian with stress marks": Case("Ста\u0301рый за\u0301мок", ("Кошка",), ("замок", "старый"), "russian"),
    "Russian in English text": Case("Ёлки, сервер", ("Кошка",), ("елки", "ЁЛКИ", "СЕРВЕР")),
    "Ukrainian": Case(
        "Комп’ютер і об'єкт", ("Кіт",), ("комп'ютер", "компʼютер", "КОМП’ЮТЕР", "об’єкт"), "simple"
    ),
    "Serbian": Case("База података", ("Мачка",), ("база", "базе", "података"), "serbian"),
    "Greek": Case(
        "Η Αθήνα έχει λόγους", ("Γάτα",), ("αθηνα", "ΑΘΗΝΑ", "Αθήνα", "λόγος", "ΛΟΓΟΣ", "λογος"), "greek"
    ),
    "Greek in English text": Case(
        "Αθήνα λόγος ΟΔΟΣ", ("Γάτα",), ("αθηνα", "ΑΘΗΝΑ", "ΛΟΓΟΣ", "λόγος", "οδός", "οδος")
    ),
    "Armenian": Case("Տվյալների բազան", ("Կատու",), ("տվյալների", "ՏՎՅԱԼՆԵՐԻ", "բազա"), "armenian"),
    "Arabic": Case(
        "إِدَارَةُ المكتبة في القـــاهرة على الإنترنت",
        ("قطة",),
        ("إدارة", "ادارة", "اداره", "أدارة", "مكتبة", "المكتبه", "القاهرة", "القاهره", "الانترنت"),
        "arabic",
    ),
    "Arabic in English text": Case(
        "القاهرة أحمد مصطفى ٢٠٢٤", ("قطة",), ("القاهره", "احمد", "أَحْمَد", "مصطفي", "2024", "٢٠٢٤", "۲۰۲۴")
    ),
    "Persian": Case("کتاب‌های فارسی", ("گربه",), ("كتاب‌هاي", "کتابهای", "فارسي", "فارسی"), "simple"),
    "Hebrew": Case("בֵּית־סֵפֶר", ("חתול",), ("בית ספר", "בית-ספר", "בית־ספר", "ספר", "ביתספר"), "simple"),
    "Yiddish": Case("די ביבליאָטעק", ("קאַץ",), ("ביבליאָטעק", "ביבליאטעק"), "yiddish"),
    "Hindi": Case("हिन्दी भाषाओं का पुस्तकालय", ("बिल्ली",), ("हिन्दी", "भाषा", "पुस्तकालय"), "hindi"),
    "Nepali": Case("नेपाली भाषाको पुस्तकालय", ("बिरालो",), ("नेपाली", "पुस्तकालय"), "nepali"),
    "Tamil": Case("தமிழ் நூலகம்", ("பூனை",), ("தமிழ்", "நூலகம்"), "tamil"),
    "Chinese": Case(
        "数据库系统使用PostgreSQL存储文件",
        ("数学", "系列文章", "倉庫"),
        ("数据库", "数据", "系统", "存储文件", "postgresql", "数据库postgresql", "库"),
    ),
    "Japanese": Case(
        "データベースにファイルを保存する",
        ("デール", "保育"),
        ("データベース", "ファイル", "ﾌｧｲﾙ", "保存", "データベースの保存", "存"),
    ),
    "Korean": Case(
        "데이터베이스를 관리하는 서버",
        ("데스크", "관광"),
        ("데이터베이스", "관리", "서버", "데이터베이스에서"),
    ),
    "Korean in parts": Case("\u1100\u116a\u11ab\u1105\u1175", ("관광",), ("관리",)),
    "variation selectors": Case("葛\ufe00飾区 葛\U000e0100城市", ("飾",), ("葛飾区", "葛城市")),
    "mixed scripts": Case(
        "Ошибка E-4021 в データベース، الخادم",
        ("Кошка", "4021"),
        ("ошибка", "e4021", "データ", "الخادم", "E-4021 ошибка"),
    ),
}


def configurations(connection: Connection) -> set[str]:
    """Return what this server can analyse by: PostgreSQL 16 lacks Estonian."""
    return {name for (name,) in connection.execute("select cfgname::text from pg_ts_config").fetchall()}


@pytest.fixture(scope="module")
def library(installed_template: str, session_database: Callable[..., str]) -> Iterator[Connection]:
    """A database with a collection for each case: the other texts first, so that they win ties."""
    with psycopg.connect(session_database(template=installed_template), autocommit=True) as connection:
        shipped = configurations(connection)
        for name, case in CASES.items():
            if case.analyzer not in shipped:
                continue
            connection.execute("select pgrag.create_collection(%s, %s)", (name, case.analyzer))
            for uri, text in [*enumerate(case.others), ("said", case.said)]:
                connection.execute(
                    "select pgrag.put_document(%s, %s, %s, '{public}')", (name, str(uri), text)
                )
        yield connection


@pytest.mark.parametrize(
    ("name", "typed"), [(name, typed) for name, case in CASES.items() for typed in case.typed]
)
def test_the_text_that_says_it_comes_first(library: Connection, name: str, typed: str) -> None:
    if CASES[name].analyzer not in configurations(library):
        pytest.skip(f"this server has no configuration {CASES[name].analyzer}")
    with library.transaction():
        library.execute("set local role pgrag_app")
        library.execute("select pgrag.act_as('public')")
        found = library.execute(
            """
            select d.uri, s.score
            from pgrag.search_lexical(%s, 10, array[%s]) as s
            inner join pgrag.document as d using (document_id)
            order by s.rank""",
            (typed, name),
        ).fetchall()
    assert [uri for uri, _ in found[:1]] == ["said"]
    assert all(score < found[0][1] for _, score in found[1:])


def test_every_configuration_of_the_server_has_a_case(library: Connection) -> None:
    assert configurations(library) <= {case.analyzer for case in CASES.values()}
