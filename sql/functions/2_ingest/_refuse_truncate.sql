-- Refuses TRUNCATE, which would pass by the triggers that keep the index right.
create or replace function pgrag._refuse_truncate() returns trigger
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception 'pgrag.% can''t be truncated: the index would keep what the table lost', tg_table_name
        using errcode = 'RG006', hint = 'Delete the rows, or drop the collection.';
end
$$;

comment on function pgrag._refuse_truncate() is
'Refuses TRUNCATE, which would pass by the triggers that keep the index right. Error RG006.';
