-- What each chunk was analysed by: so far by its collection's analyzer, whatever the document's language.
-- A constant default rewrites no table, so most chunks get theirs that way; the triggers have nothing to do with it.
do $$
declare
    usual text := coalesce((
        select c.analyzer
        from pgrag.collection as c
        left join pgrag.corpus_stat as s on s.collection_id = c.collection_id
        group by c.analyzer
        order by sum(s.chunks) desc nulls last, c.analyzer
        limit 1
    ), 'english');
begin
    execute format('alter table pgrag.chunk add column analyzer text collate "C" not null default %L', usual);
    execute format('alter table pgrag.corpus_stat add column analyzer text collate "C" not null default %L', usual);
    alter table pgrag.chunk disable trigger user;
    update pgrag.chunk as h set analyzer = c.analyzer
    from pgrag.collection as c
    where h.collection_id = c.collection_id and c.analyzer <> usual;
    alter table pgrag.chunk enable trigger user;
    update pgrag.corpus_stat as s set analyzer = c.analyzer
    from pgrag.collection as c
    where s.collection_id = c.collection_id and c.analyzer <> usual;
end
$$;

alter table pgrag.chunk alter column analyzer drop default;
alter table pgrag.corpus_stat alter column analyzer drop default;

comment on column pgrag.collection.analyzer is 'Text search configuration for documents without a language.';
comment on column pgrag.document.language is 'BCP 47 tag, which says by which configuration the text is analysed; NULL where it is unknown: by the collection''s.';
comment on column pgrag.chunk.analyzer is 'Text search configuration that tsv was made by: that of the document''s language, else the collection''s; kept by trigger.';
comment on table pgrag.corpus_stat is 'Chunks and lexemes per ACL and analyzer as signed rows, summed at query time over what the caller may see; folded by compact().';

-- It returns other columns now, which a replacement may not.
drop function if exists pgrag._visible_collections(text[]) cascade;
