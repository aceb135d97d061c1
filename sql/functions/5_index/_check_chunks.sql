-- Compares what is derived from chunks with their text: span, hash, analysis, length, readers.
create or replace function pgrag._check_chunks(collection_id int)
returns table (finding text, place bigint, subject text, detail text)
language sql stable parallel safe security invoker
begin atomic
with derived as materialized (
    select c.chunk_id, c.document_id, c.ordinal, c.acl_id, c.char_start, c.char_end,
        c.hash <> pgrag._chunk_hash(c.context, c.content) as hash_differs,
        coalesce(c.tsv <> pgrag._try_analyze(c.analyzer, c.context || E'\n' || c.content), true) as tsv_differs,
        c.analyzer, coalesce(pgrag._language_analyzer(t.language), o.analyzer) as due_analyzer,
        c.lexeme_count,
        (
            select least(coalesce(sum(least(cardinality(l.positions), 255)), 0), 32767) from unnest(c.tsv) as l
        ) as counted
    from pgrag.chunk as c
    inner join pgrag.collection as o on o.collection_id = c.collection_id
    left join pgrag.document as t on t.collection_id = c.collection_id and t.document_id = c.document_id
    where c.collection_id = _check_chunks.collection_id
),

-- Long texts are cut once, into segments of 65,536 characters or of the longest chunk, each with room for a chunk that
-- begins in it: so that no span is looked for from the text's beginning.
size as (
    select d.document_id, greatest(65536, max(d.char_end - d.char_start)) as characters from derived as d group by d.document_id
),

segment as materialized (
    select t.document_id, z.characters, n.n, substr(t.content, n.n * z.characters + 1, 2 * z.characters) as content
    from pgrag.document_text as t
    inner join size as z on z.document_id = t.document_id
    cross join lateral generate_series(0, length(t.content) / z.characters) as n (n)
    where t.collection_id = _check_chunks.collection_id
),

span as materialized (
    select c.chunk_id
    from pgrag.chunk as c
    inner join size as z on z.document_id = c.document_id
    left join segment as s on s.document_id = c.document_id and s.n = c.char_start / z.characters
    where c.collection_id = _check_chunks.collection_id
        and substr(s.content, c.char_start % z.characters + 1, c.char_end - c.char_start) is distinct from c.content
),

named as (
    select d.*, o.uri, o.acl_id as document_acl_id, t.acl_id as text_acl_id,
        coalesce(o.uri, 'document ' || d.document_id) || ' #' || d.ordinal as subject
    from derived as d
    left join pgrag.document as o on o.collection_id = _check_chunks.collection_id and o.document_id = d.document_id
    left join pgrag.document_text as t on t.collection_id = _check_chunks.collection_id and t.document_id = d.document_id
)

select f.finding, n.chunk_id as place, n.subject, f.detail
from named as n
left join span as s on s.chunk_id = n.chunk_id
cross join lateral (
    values
    ('span', s.chunk_id is not null, format('characters %s to %s of the document''s text are not the content', n.char_start, n.char_end)),
    ('hash', n.hash_differs, 'hash is not that of context and content'),
    (
        'tsv', n.tsv_differs or n.analyzer <> n.due_analyzer,
        case
            when n.analyzer <> n.due_analyzer then format('analysed by %s, which should be %s', n.analyzer, n.due_analyzer)
            else 'analyze() gives something else now'
        end
    ),
    ('length', n.lexeme_count <> n.counted, format('lexeme_count is %s, tsv holds %s', n.lexeme_count, n.counted)),
    ('document', n.document_acl_id is null, 'the document is not there'),
    ('readers', n.acl_id <> n.document_acl_id, format('under ACL %s, its document under %s', n.acl_id, n.document_acl_id)),
    (
        'readers', n.text_acl_id <> n.document_acl_id,
        format('the document''s text is under ACL %s, the document under %s', n.text_acl_id, n.document_acl_id)
    )
) as f (finding, found, detail)
where f.found;
end;

comment on function pgrag._check_chunks(int) is
'Compares what is derived from chunks with their text, for check(): a row per chunk and finding, in no order.
span: content is not that part of the document''s text. hash, tsv, length: derived columns differ; tsv also where it was made by another analyzer than that of the document''s language or, without one, the collection''s. document: it is not there. readers: a chunk or text under another ACL than its document.';
