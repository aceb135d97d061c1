-- Counts what a passage takes of a budget: its content, and the fence around it.
create or replace function pgrag._passage_cost(token_count int, title text, heading_path text[], uri text, page int) returns int
language sql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
select token_count + pgrag._estimate_tokens(
    pgrag._fence('00000000', 'P00', title, heading_path, uri, page) || '</passage-00000000>'
);
$$;

comment on function pgrag._passage_cost(int, text, text[], text, int) is
'Counts what a passage takes of a budget: the tokens of its content as its writer counted them, plus pgrag._estimate_tokens of its fence.';
