-- Makes a collection, the place where documents are put.
create or replace function pgrag.create_collection(
    name text,
    analyzer text default 'english',
    k1 float8 default 1.2,
    b float8 default 0.75,
    chunk_tokens int default 256,
    space text default null
) returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    new_id int;
    chosen_id int;
begin
    if name is null or name !~ '^\S(.{0,98}\S)?$' then
        raise exception 'a collection''s name has 1 to 100 characters and no space at its ends, got "%"', coalesce(name, 'NULL')
            using errcode = 'RG001', hint = 'Pass a name such as handbook.';
    end if;
    perform pgrag._check_range('chunk_tokens', chunk_tokens, 16, 8192);
    if k1 is null or k1 not between 0 and 10 or b is null or b not between 0 and 1 then
        raise exception 'k1 must be between 0 and 10 and b between 0 and 1, got % and %', k1, b
            using errcode = 'RG001', hint = 'The usual values are 1.2 and 0.75.';
    end if;
    perform pgrag._analyzer_config(coalesce(analyzer, 'NULL'));
    -- Looked up first, so that no number is burnt; and the conflict is that somebody else is making it right now.
    if not exists (select from pgrag.collection as c where c.name = create_collection.name) then
        insert into pgrag.collection (name, analyzer, k1, b, chunk_tokens) values (name, analyzer, k1, b, chunk_tokens)
        on conflict on constraint collection_name_key do nothing
        returning collection_id into new_id;
    end if;
    if new_id is null then
        raise exception 'collection "%" exists already', name
            using errcode = 'RG004', hint = 'Put documents into it, or choose another name.';
    end if;
    if space is null then
        -- The static space needs no process outside the database, so whoever loaded it has hybrid search at once. The
        -- newest: an older one holds the vectors of a table that an earlier release shipped.
        select s.space_id into chosen_id from pgrag.space as s
        where s.kind = 'static' and s.state = 'active' order by s.space_id desc limit 1;
    else
        select s.space_id into chosen_id from pgrag.space as s where s.name = create_collection.space;
        if chosen_id is null then
            raise exception 'space "%" does not exist', space
                using errcode = 'RG005', hint = 'select name from pgrag.space lists the spaces.';
        end if;
    end if;
    if chosen_id is not null then
        insert into pgrag.collection_space (collection_id, space_id) values (new_id, chosen_id);
        update pgrag.collection as c set active_space_id = chosen_id where c.collection_id = new_id;
    end if;
    return new_id;
end
$$;

comment on function pgrag.create_collection(text, text, float8, float8, int, text) is
'Makes a collection, the place where documents are put; returns its collection_id.
analyzer: a text search configuration. k1 0 to 10 and b 0 to 1: BM25. chunk_tokens: most tokens in a chunk, 16 to 8,192. space: its embedding space; NULL: the newest active static space, or none, and then search is lexical.
For members of pgrag_writer and pgrag_owner. Errors: RG001 a name or number out of its range, RG004 the name is taken, RG005 no such space, RG010 no such analyzer.';
