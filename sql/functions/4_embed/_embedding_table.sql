-- Makes the typed table that holds the vectors of a space.
create or replace function pgrag._embedding_table(space_id int) returns void
language plpgsql volatile parallel unsafe security definer
set search_path from current
as $$
declare
    of_space pgrag.space;
    name text := 'embedding_' || space_id;
    code text := '';
begin
    select * into strict of_space from pgrag.space as s where s.space_id = _embedding_table.space_id;
    if of_space."precision" = 'bit' then
        code := format(' code bit(%s) not null,', of_space.dimension);
    end if;
    execute format(
        'create table if not exists pgrag.%1$I (
            chunk_id bigint not null,
            collection_id int not null,
            acl_id int not null,
            embedding %5$s not null,%2$s
            constraint %3$I primary key (collection_id, chunk_id),
            constraint %4$I foreign key (collection_id, chunk_id, acl_id)
            references pgrag.chunk (collection_id, chunk_id, acl_id) on update cascade on delete cascade
        )', name, code, name || '_pkey', name || '_chunk_fkey',
        format('%s(%s)', case of_space."precision" when 'vector' then 'vector' else 'halfvec' end, of_space.dimension));
    execute format('create index if not exists %I on pgrag.%I (collection_id, acl_id)', name || '_acl_idx', name);
    if of_space.rotate and not exists (select from pgrag.space_axis as a where a.space_id = of_space.space_id) then
        insert into pgrag.space_axis (space_id, place, axis)
        select of_space.space_id, r.place, r.axis from pgrag._rotation(of_space.dimension, hashtextextended(of_space.name, 0)) as r;
    end if;
    if code <> '' then
        execute format(
            'create or replace trigger keep_code before insert or update of embedding on pgrag.%I
            for each row execute function pgrag._keep_code(%s)', name, of_space.space_id
        );
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
'Makes the typed table that holds the vectors of a space, with its policies and grants, but no approximate index; what is there already is left. Definer; called by create_space and on upgrade.';
