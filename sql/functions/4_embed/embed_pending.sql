-- Embeds, in SQL, some of what a static space still lacks.
create or replace function pgrag.embed_pending(space text, most int default 256) returns int
language plpgsql volatile parallel unsafe security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    in_space int := pgrag._space_id(space);
    ids bigint[];
    hashes bytea[];
    embeddings text[];
begin
    if exists (select from pgrag.space as s where s.space_id = in_space and s.kind <> 'static') then
        raise exception 'the documents of space "%" are not embedded in SQL', space
            using errcode = 'RG005', hint = format('Let a worker with its model do it: pgrag worker --space %s --model ...', space);
    end if;
    select array_agg(c.chunk_id), array_agg(c.hash), array_agg(pgrag._embed_static(in_space, c.content)::text)
    into ids, hashes, embeddings
    from pgrag.claim_chunks(space, most, interval '0') as c;
    if ids is null then
        return 0;
    end if;
    perform pgrag.store_vectors(space, ids, hashes, embeddings);
    return cardinality(ids);
end
$$;

comment on function pgrag.embed_pending(text, int) is
'Embeds, in SQL, some of what a static space still lacks; returns how many chunks were looked at, 0 once nothing is due: call it until then, a transaction each.
For spaces of a table that this release does not ship any more; another is embedded faster by pgrag worker. most: 1 to 100,000. For members of pgrag_writer and pgrag_owner; definer, since writers may not read every encoder table. Errors: RG001, RG005 no such space, or one of a model.';
