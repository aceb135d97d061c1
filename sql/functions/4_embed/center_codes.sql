-- Takes the codes of a space from its centre on, so that a bit says what tells vectors apart.
create or replace function pgrag.center_codes(space text, sample int default 10000) returns bigint
language plpgsql volatile parallel unsafe security definer
set search_path from current
as $$
declare
    of_space pgrag.space;
    written bigint;
begin
    perform pgrag._check_range('sample', sample, 1, 1000000);
    select * into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space) for update;
    if of_space."precision" <> 'bit' then
        return 0;
    end if;
    execute format('lock table pgrag.%I in share row exclusive mode', 'embedding_' || of_space.space_id);
    execute format(
        'update pgrag.space as s set center = (
            select avg(v.embedding::vector)
            from (
                select e.embedding from pgrag.%I as e
                where e.acl_id = any((select pgrag._open_acl_ids())::int[])
                order by hashint8extended(e.chunk_id, 0)
                limit $2
            ) as v
        )
        where s.space_id = $1', 'embedding_' || of_space.space_id
    ) using of_space.space_id, sample;
    execute format('update pgrag.%I as e set embedding = e.embedding', 'embedding_' || of_space.space_id);
    get diagnostics written = row_count;
    return written;
end
$$;

comment on function pgrag.center_codes(text, int) is
'Takes the codes of a space from its centre on, the mean of a sample of what everybody may read, since the centre can be told from codes, and writes all codes again; returns how many. Where everybody may read nothing the centre is zero. Searches go on, by the codes before; writers of vectors wait. Nothing, and 0, where the precision isn''t bit. sample: vectors, 1 to 1,000,000. For members of pgrag_owner. Errors: RG001, RG005.';
