-- Folds the small logs: access changes, statistics of BM25, the list of lexemes.
create or replace function pgrag._fold_logs() returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    folded bigint;
begin
    -- Deleting and inserting are one statement, since what a second statement would see could have changed.
    with d as (
        delete from pgrag.access_change where (select count(*) from pgrag.access_change) > 1 returning n
    )
    insert into pgrag.access_change (n) select sum(d.n) from d having count(*) > 0;

    with due as (
        select s.collection_id, s.acl_id, s.analyzer
        from pgrag.corpus_stat as s
        group by s.collection_id, s.acl_id, s.analyzer
        having count(*) > 1
    ),

    d as (
        delete from pgrag.corpus_stat as s
        using due
        where s.collection_id = due.collection_id and s.acl_id = due.acl_id and s.analyzer = due.analyzer
        returning s.*
    ),

    made as (
        insert into pgrag.corpus_stat (collection_id, acl_id, chunks, lexemes, analyzer)
        select d.collection_id, d.acl_id, sum(d.chunks), sum(d.lexemes), d.analyzer
        from d
        group by d.collection_id, d.acl_id, d.analyzer
        having sum(d.chunks) <> 0 or sum(d.lexemes) <> 0
    )

    select count(*) from d into folded;
    -- Every statement that writes postings appends statistics: none to fold, nothing to merge.
    if folded = 0 then
        return false;
    end if;

    delete from pgrag.lexeme as l
    using (
        select m.ctid as place, row_number() over (partition by m.collection_id, m.acl_id, m.lexeme order by m.ctid) as nth
        from pgrag.lexeme as m
    ) as twin
    where l.ctid = twin.place and twin.nth > 1;
    return true;
end
$$;

comment on function pgrag._fold_logs() is
'Folds the small logs: access changes to one row, statistics to one per ACL and analyzer, the list of lexemes to one per lexeme and ACL. Returns false where no two statements had written to the same ACL since the last time, and so no run has another to be merged with. For compact(), under its lock.';
