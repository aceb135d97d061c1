"""A document's language says how its text is analysed; what is kept of that is derived, whatever a writer sends."""

from __future__ import annotations

import psycopg
import pytest
from _pgrag import Database

GERMAN = "Die Häuser der Stadt"
BY_GERMAN = "select pgrag.analyze('german', context || E'\\n' || content) = tsv from pgrag.chunk"


@pytest.mark.parametrize(
    ("tag", "analyzer"),
    [
        ("de", "german"),
        ("de-AT", "german"),
        ("DE", "german"),
        ("deu", "german"),
        ("german", "german"),
        ("pt-BR", "portuguese"),
        ("sr-Latn", "serbian"),
        ("nb", "norwegian"),
        ("en_US", "english"),
        ("zh-Hant", "simple"),
        ("ja", "simple"),
        ("ko", "simple"),
        ("tlh", "simple"),
        ("i-klingon", "simple"),
        ("und", None),
        ("x-ours", None),
        ("", None),
        ("d", None),
        ("germn", None),
        ("deutsch; english", None),
        (None, None),
    ],
)
def test_the_tag_says_the_analyzer(db: Database, tag: str | None, analyzer: str | None) -> None:
    assert db.value("select pgrag._language_analyzer(%s)", (tag,)) == analyzer


def test_every_configuration_of_the_server_is_reached_by_a_tag_and_by_its_name(db: Database) -> None:
    tags = "ar hy eu ca da nl en et eo fi fr de el hi hu id ga it lt ne no pl pt ro ru sr es sv ta tr yi ja"
    missing = db.execute(
        "select cfgname from pg_ts_config where cfgnamespace = 'pg_catalog'::regnamespace"
        " and (cfgname <> all(array(select pgrag._language_analyzer(t) from string_to_table(%s, ' ') as t))"
        " or pgrag._language_analyzer(cfgname) <> cfgname)",
        (tags,),
    )
    assert missing == []


def test_every_configuration_of_the_server_analyses_a_document(db: Database) -> None:
    names = [
        name
        for (name,) in db.execute("select cfgname from pg_ts_config where cfgnamespace = 11 order by cfgname")
    ]
    for name in names:
        db.put(name, "word", language=name)
    assert db.execute("select analyzer from pgrag.chunk order by analyzer") == [(name,) for name in names]


def test_a_document_without_a_language_goes_by_its_collection(db: Database) -> None:
    db.execute("select pgrag.create_collection('plain', 'simple')")
    db.put("x", GERMAN, collection="plain")
    assert db.value("select analyzer from pgrag.chunk") == "simple"


def test_a_document_with_a_language_goes_by_that(db: Database) -> None:
    db.put("x", GERMAN, language="de-AT")
    assert db.value("select analyzer from pgrag.chunk") == "german"
    assert db.value(BY_GERMAN) is True


@pytest.mark.parametrize(
    "tag", ["", "d", "germn", "de AT", "de_AT", "de-", "x-", "deutsch; english", "de-überall"]
)
def test_what_is_no_tag_is_refused(db: Database, tag: str) -> None:
    with pytest.raises(psycopg.Error, match=f'language must be a BCP 47 tag, got "{tag}"') as caught:
        db.put("x", GERMAN, language=tag)
    assert caught.value.sqlstate == "RG001"


@pytest.mark.parametrize("language", ["de", None])
def test_another_language_analyses_again(db: Database, language: str | None) -> None:
    db.execute("select pgrag.create_collection('other', 'german')")
    db.put("x", GERMAN, collection="other", language="en" if language is None else "fr")
    with db.connect("pgrag_test_writer") as writer:
        writer.execute("update pgrag.document set language = %s", (language,))
    assert db.value(BY_GERMAN) is True
    assert db.execute("select * from pgrag.check()") == []


def test_putting_the_same_text_in_another_language_keeps_its_chunks(db: Database) -> None:
    db.put("x", GERMAN)
    before = db.execute("select chunk_id, hash from pgrag.chunk")
    db.put("x", GERMAN, language="de")
    assert db.execute("select chunk_id, hash from pgrag.chunk") == before
    assert db.value(BY_GERMAN) is True
    assert db.execute("select * from pgrag.check()") == []


def test_a_language_that_is_analysed_alike_writes_no_chunk(db: Database) -> None:
    db.put("x", GERMAN)
    before = db.execute("select ctid, xmin::text from pgrag.chunk")
    db.put("x", GERMAN, language="en-GB")
    assert db.execute("select ctid, xmin::text from pgrag.chunk") == before


def test_a_chunk_that_is_inserted_by_hand_is_analysed_by_its_documents_language(db: Database) -> None:
    db.put("x", GERMAN, language="de")
    with db.connect("pgrag_test_writer") as writer:
        writer.execute(
            "insert into pgrag.chunk (collection_id, acl_id, document_id, ordinal, char_start, char_end, token_count,"
            " content, analyzer) select collection_id, acl_id, document_id, 1, 4, 10, 1, 'Häuser', 'french' from pgrag.document"
        )
    assert db.execute("select analyzer from pgrag.chunk") == [("german",), ("german",)]


def test_a_writer_cannot_plant_an_analyzer(db: Database) -> None:
    db.put("x", GERMAN, language="de")
    with db.connect("pgrag_test_writer") as writer:
        writer.execute("update pgrag.chunk set analyzer = 'english'")
    assert db.value("select analyzer from pgrag.chunk") == "german"
    assert db.execute("select * from pgrag.check()") == []


def test_a_chunk_that_goes_to_another_document_is_analysed_by_its_language(db: Database) -> None:
    db.put("de", GERMAN, language="de")
    db.put("en", "The houses of the town")
    with db.connect("pgrag_test_writer") as writer:
        writer.execute(
            "update pgrag.chunk as c set document_id = d.document_id, ordinal = 1 from pgrag.document as d"
            " where d.uri = 'de' and c.document_id <> d.document_id"
        )
    assert db.execute("select distinct analyzer from pgrag.chunk") == [("german",)]


def test_changing_readers_analyses_nothing(db: Database) -> None:
    db.put("x", GERMAN, language="de")
    before = db.value("select tsv from pgrag.chunk")
    db.execute("select pgrag.set_readers('docs', 'x', array['user:ana'])")
    assert db.value("select tsv from pgrag.chunk") == before
    assert db.execute("select * from pgrag.check()") == []
