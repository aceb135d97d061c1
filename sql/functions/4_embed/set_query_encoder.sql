-- Gives a space the token table that embeds its queries in SQL, or takes it away.
create or replace function pgrag.set_query_encoder(space text, encoder text default null, figures jsonb default '{}') returns int
language plpgsql volatile parallel unsafe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    of_id int := pgrag._space_id(space);
    tokens int;
begin
    perform pgrag._check_object('figures', figures);
    -- Locked, so that two who replace the table at once come one after the other.
    perform from pgrag.space as s where s.space_id = of_id for update;
    perform pgrag._check_refit(of_id);
    if encoder is null then
        delete from pgrag.encoder_token as t where t.space_id = of_id;
        update pgrag.space as s set query_encoder = null where s.space_id = of_id;
        update pgrag.space_figures as f set figures = f.figures - 'query_encoder' where f.space_id = of_id;
        return 0;
    end if;
    if encoder !~ '^[a-z][a-z0-9_.-]{0,63}$' then
        raise exception 'a query encoder''s name has 1 to 64 of a-z, 0-9, _, . and -, and begins with a letter, got "%"', encoder
            using errcode = 'RG001', hint = 'Pass a name such as minilm-static.';
    end if;
    select count(*) into tokens from pgrag.encoder_token as t where t.space_id = of_id;
    if tokens = 0 then
        raise exception 'space "%" has no token vectors', space
            using errcode = 'RG005', hint = 'Load them first, in the same transaction: pgrag.load_encoder_tokens.';
    end if;
    update pgrag.space as s set query_encoder = encoder where s.space_id = of_id;
    figures := jsonb_build_object('query_encoder', figures || jsonb_build_object('name', encoder));
    insert into pgrag.space_figures as f (space_id, figures) values (of_id, figures)
    on conflict on constraint space_figures_pkey do update set figures = f.figures || excluded.figures;
    return tokens;
end
$$;

comment on function pgrag.set_query_encoder(text, text, jsonb) is
'Gives a space of a model the token table that embeds its queries in SQL, once pgrag.load_encoder_tokens has loaded it, or takes it away; returns how many tokens it has.
encoder: the table''s name, which dense_plan shows; NULL removes the table. figures: shown to writers in the passport beneath `query_encoder`.
To replace a table: remove it, load the other and set it, in one transaction; searches answer by the old one until it commits. For members of pgrag_owner.
Errors: RG001 not a name, or figures that are no JSON object; RG005 no such space, no tokens, or a space whose documents are by its table.';
