-- Sets how a search of a collection is made that says nothing else.
create or replace function pgrag.set_search_settings(collection text, settings jsonb) returns void
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    in_id int := pgrag._collection_id(collection);
    wrong text;
begin
    perform pgrag._check_object('settings', settings);
    select s.key into wrong from jsonb_object_keys(settings) as s (key)
    where s.key not in ('depth', 'rrf_k', 'weights', 'fusion')
    order by s.key collate "C"
    limit 1;
    if found then
        raise exception 'there is no search setting "%"', wrong
            using errcode = 'RG001', hint = 'Settings are depth, rrf_k, weights and fusion.';
    end if;
    select s.key into wrong from jsonb_each_text(settings) as s
    where s.key in ('depth', 'rrf_k') and (jsonb_typeof(settings -> s.key) <> 'number' or not pg_input_is_valid(s.value, 'int'))
    limit 1;
    if found then
        raise exception '% must be a whole number, got %', wrong, left((settings -> wrong)::text, 100)
            using errcode = 'RG001', hint = 'Pass {"depth": 200}.';
    end if;
    if settings ? 'depth' then
        perform pgrag._check_range('depth', (settings ->> 'depth')::int, 1, 10000);
    end if;
    if settings ? 'rrf_k' then
        perform pgrag._check_range('rrf_k', (settings ->> 'rrf_k')::int, 1, 1000000);
    end if;
    if settings ? 'weights' then
        perform pgrag._weight(settings -> 'weights', 'lexical');
    end if;
    if settings ? 'fusion' then
        perform pgrag._check_fusion(settings ->> 'fusion');
    end if;
    update pgrag.collection as c set search_settings = settings
    where c.collection_id = in_id and c.search_settings <> settings;
end
$$;

comment on function pgrag.set_search_settings(text, jsonb) is
'Sets how a search of a collection is made that says nothing else; what was set before is replaced, and `{}` goes back to the defaults of pgrag.search.
settings: a JSON object of depth, rrf_k, weights and fusion, as pgrag.search takes them. A search of several collections goes by what they agree on. For members of pgrag_writer and pgrag_owner. Errors: RG001, RG002.';
