-- Appends to the posting log what a statement did to chunks.
create or replace function pgrag._index_chunks() returns trigger
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Which rows of which transition table count with which sign; constants, no caller's text.
    changed text := case tg_op
        when 'INSERT' then 'select 1::smallint as sign, n.* from new_rows as n'
        when 'DELETE' then 'select (-1)::smallint as sign, o.* from old_rows as o'
        else 'select 1::smallint as sign, n.*
              from new_rows as n
              inner join old_rows as o on o.collection_id = n.collection_id and o.chunk_id = n.chunk_id
              where n.acl_id <> o.acl_id or n.tsv <> o.tsv or n.analyzer <> o.analyzer
              union all
              select (-1)::smallint, o.*
              from new_rows as n
              inner join old_rows as o on o.collection_id = n.collection_id and o.chunk_id = n.chunk_id
              where n.acl_id <> o.acl_id or n.tsv <> o.tsv or n.analyzer <> o.analyzer'
        end;
begin
    execute format($sql$
        with changed as materialized (
            select c.sign, c.collection_id, c.acl_id, c.chunk_id, c.lexeme_count::smallint as length, c.tsv, c.analyzer from (%s) as c
        ),

        word as (
            select c.sign, c.collection_id, c.acl_id, c.chunk_id, c.length, l.lexeme collate "C" as lexeme,
                hashtextextended(l.lexeme collate "C", 0) as term,
                least(cardinality(l.positions), 255)::smallint as tf
            from changed as c
            cross join lateral unnest(c.tsv) as l
        ),

        run as materialized (
            select w.term, w.collection_id, w.acl_id, w.sign, min(w.lexeme) as lexeme, count(*) as n,
                max(w.tf) as max_tf, min(w.length / w.tf) as min_ratio,
                array_agg(pgrag._pack_posting(w.chunk_id, w.tf, w.length) order by w.chunk_id) as entries
            from word as w
            group by w.term, w.acl_id, w.sign, w.collection_id
        ),

        counted as (
            insert into pgrag.corpus_stat (collection_id, acl_id, chunks, lexemes, analyzer)
            select c.collection_id, c.acl_id, sum(c.sign), sum(c.sign * c.length), c.analyzer
            from changed as c
            group by c.collection_id, c.acl_id, c.analyzer
        ),

        named as (
            insert into pgrag.lexeme (collection_id, acl_id, lexeme)
            select r.collection_id, r.acl_id, r.lexeme
            from run as r
            where r.sign = 1 and not exists (
                select from pgrag.lexeme as l
                where l.collection_id = r.collection_id and l.acl_id = r.acl_id and l.lexeme = r.lexeme
            )
        )

        insert into pgrag.posting (term, collection_id, acl_id, n, sign, max_tf, min_ratio, entries)
        select r.term, r.collection_id, r.acl_id, r.n, r.sign, r.max_tf, r.min_ratio, r.entries
        from run as r
        where r.n <= pgrag._run_length()
        union all
        select r.term, r.collection_id, r.acl_id, c.n, r.sign, c.max_tf, c.min_ratio, c.entries
        from run as r
        cross join lateral pgrag._cut_run(r.entries) as c
        where r.n > pgrag._run_length()
    $sql$, changed);
    return null;
end
$$;

comment on function pgrag._index_chunks() is
'Appends to the posting log what a statement did to chunks: +1 for what came, -1 for what went, both for what moved to another ACL or got another text; nothing for the rest. Also corpus_stat and lexeme. Statement trigger on chunk.';
