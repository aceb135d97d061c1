-- Makes the typed table that holds the vectors of a space.
create or replace function pgrag._embedding_table(space_id int) returns void
language plpgsql volatile parallel unsafe security definer
set search_path from current
as $$
declare
    of_space pgrag.space;
    name text := 'embedding_' || space_id;
begin
    select * into strict of_space from pgrag.space as s where s.space_id = _embedding_table.space_id;
    execute format(
        'create table if not exists pgrag.%1$I (
            chunk_id bigint not null,
            collection_id int not null,
            acl_id int not null,
            embedding halfvec(%2$s) not null,
            constraint %3$I primary key (collection_id, chunk_id),
            constraint %4$I foreign key (collection_id, chunk_id, acl_id)
            references pgrag.chunk (collection_id, chunk_id, acl_id) on update cascade on delete cascade
        )', name, of_space.dimension, name || '_pkey', name || '_chunk_fkey');
    execute format('create index if not exists %I on pgrag.%I (collection_id, acl_id)', name || '_acl_idx', name);
    if of_space.index_kind = 'hnsw' then
        execute format('create index if not exists %I on pgrag.%I using hnsw (embedding halfvec_cosine_ops)', name || '_hnsw_idx', name);
    end if;
    execute format('comment on table pgrag.%I is %L', name, format('Vectors of space %s: one row per chunk.', of_space.name));
    execute format('alter table pgrag.%I enable row level security', name);
    execute format('alter table pgrag.%I force row level security', name);
    perform pgrag._content_policies(name);
    execute format('drop trigger if exists refuse_truncate on pgrag.%I', name);
    execute format(
        'create trigger refuse_truncate before truncate on pgrag.%I for each statement execute function pgrag._refuse_truncate()', name
    );
    execute format('grant select on pgrag.%I to pgrag_reader', name);
    execute format('grant select, insert, update, delete on pgrag.%I to pgrag_writer', name);
end
$$;

comment on function pgrag._embedding_table(int) is
'Makes the typed table that holds the vectors of a space, with its index, policies and grants; what is there already is left. Definer; called by create_space and on upgrade.';
