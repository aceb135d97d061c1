-- Lists the embedding spaces, with what they hold and what they lack.
create or replace function pgrag.spaces(space text default null)
returns table (
    name text, kind text, model text, dimension int, model_dimension int, "precision" text, rotate boolean,  -- noqa: RF06
    index_kind text, index_options jsonb, index_state text, state text, paused boolean, query_encoder text,
    collections text[], answers text[], vectors bigint, pending bigint, failing bigint,
    table_bytes bigint, index_bytes bigint, created_at timestamptz, passport jsonb, calibration jsonb
)
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    one pgrag.space;
    indexes record;
    built oid;
begin
    if space is not null then
        perform pgrag._space_id(space);
    end if;
    for one in
        select * from pgrag.space as s where spaces.space is null or s.name = spaces.space order by s.name
    loop
        built := to_regclass(format('pgrag.embedding_%s', one.space_id));
        select i.* into indexes from pgrag._space_indexes(one) as i;
        name := one.name;
        kind := one.kind;
        model := one.model;
        dimension := one.dimension;
        model_dimension := one.model_dimension;
        "precision" := one."precision";
        rotate := one.rotate;
        index_kind := one.index_kind;
        index_options := one.index_options;
        index_state := case
            when one.index_kind <> 'none' and exists (
                select from pg_locks as l
                where l.locktype = 'advisory' and l.database = (select d.oid from pg_database as d where d.datname = current_database())
                    and l.classid = pgrag._build_key()::oid and l.objid = one.space_id::oid and l.objsubid = 2 and l.granted
            ) then 'building'
            else indexes.state
        end;
        state := one.state;
        paused := one.paused;
        query_encoder := one.query_encoder;
        collections := array(
            select c.name from pgrag.collection_space as cs
            inner join pgrag.collection as c on c.collection_id = cs.collection_id
            where cs.space_id = one.space_id order by c.name
        );
        answers := array(select c.name from pgrag.collection as c where c.active_space_id = one.space_id order by c.name);
        execute format('select count(*) from pgrag.%I', 'embedding_' || one.space_id) into vectors;
        select count(*), count(*) filter (where q.attempts > 0) into pending, failing
        from pgrag.embed_queue as q where q.space_id = one.space_id;
        table_bytes := pg_table_size(built);
        index_bytes := indexes.bytes;
        created_at := one.created_at;
        passport := one.passport || coalesce((select f.figures from pgrag.space_figures as f where f.space_id = one.space_id), '{}');
        calibration := one.calibration;
        return next;
    end loop;
end
$$;

comment on function pgrag.spaces(text) is
'Lists the embedding spaces, with what they hold and what they lack, by name; space: only this one.
index_state: of the approximate index: `valid`, `building`, `invalid` (a build was stopped), `missing` (pgrag space build makes it), or `none`, where all searches are exact. collections: those whose passages it holds; answers: those whose searches it answers. vectors are counted; pending: passages that lack one; failing: of these, those that were tried in vain. table_bytes without indexes; index_bytes: of the approximate index.
For members of pgrag_writer and pgrag_owner, who see all of it; a reader knows the space of a collection from pgrag.collections(), and counts and sizes of hidden rows are nothing for them. Error RG005 no such space.';
