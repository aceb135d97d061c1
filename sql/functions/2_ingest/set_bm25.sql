-- Changes the parameters of BM25 that searches of a collection go by.
create or replace function pgrag.set_bm25(collection text, k1 float8, b float8) returns boolean
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._collection_id(collection);
begin
    if k1 is null or k1 not between 0 and 10 or b is null or b not between 0 and 1 then
        raise exception 'k1 must be between 0 and 10 and b between 0 and 1, got % and %', coalesce(k1::text, 'NULL'), coalesce(b::text, 'NULL')
            using errcode = 'RG001', hint = 'The usual values are 1.2 and 0.75.';
    end if;
    update pgrag.collection as c set k1 = set_bm25.k1, b = set_bm25.b
    where c.collection_id = in_id and (c.k1, c.b) is distinct from (set_bm25.k1, set_bm25.b);
    return found;
end
$$;

comment on function pgrag.set_bm25(text, float8, float8) is
'Changes the parameters of BM25 that searches of a collection go by, from the next statement; nothing is indexed anew. Returns false where they were these already.
k1: how soon a word that occurs again stops counting, 0 to 10. b: how much long passages are held back, 0 to 1. For members of pgrag_writer and pgrag_owner. Errors: RG001, RG002.';
