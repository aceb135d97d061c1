-- Sums what the caller may see in a collection, and says what it was analysed by.
create or replace function pgrag._sum_visible(
    collection_id int, acl_ids int[], out chunks bigint, out lexemes bigint, out analyzers text[]
) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    one text;
    other bigint;
begin
    -- Grouping costs twice as much as the sums, and most collections have one language: that of whatever row comes first.
    if acl_ids is null then
        select s.analyzer into one from pgrag.corpus_stat as s where s.collection_id = _sum_visible.collection_id limit 1;
        select sum(s.chunks), sum(s.lexemes), sum(s.chunks) filter (where s.analyzer <> one) into chunks, lexemes, other
        from pgrag.corpus_stat as s
        where s.collection_id = _sum_visible.collection_id;
    else
        select s.analyzer into one from pgrag.corpus_stat as s
        where s.collection_id = _sum_visible.collection_id and s.acl_id = any(acl_ids) limit 1;
        select sum(s.chunks), sum(s.lexemes), sum(s.chunks) filter (where s.analyzer <> one) into chunks, lexemes, other
        from pgrag.corpus_stat as s
        where s.collection_id = _sum_visible.collection_id and s.acl_id = any(acl_ids);
    end if;
    if chunks > 0 and coalesce(other, 0) = 0 then
        analyzers := array[one];
    elsif chunks > 0 then
        analyzers := array(
            select s.analyzer
            from pgrag.corpus_stat as s
            where s.collection_id = _sum_visible.collection_id and (acl_ids is null or s.acl_id = any(acl_ids))
            group by s.analyzer
            having sum(s.chunks) > 0
            order by s.analyzer
        );
    end if;
end
$$;

comment on function pgrag._sum_visible(int, int[]) is
'Sums what the caller may see in a collection: chunks, and lexemes over all of them; and analyzers: the text search configurations that these chunks were analysed by, in C order. NULL where there is nothing.
acl_ids: those of pgrag._few_acl_ids(); NULL: the policy filters alone.';
