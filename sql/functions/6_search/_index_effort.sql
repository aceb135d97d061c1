-- Decides whether the approximate index of a space is worth trying, and with how much effort.
create or replace function pgrag._index_effort(
    of_space pgrag.space, k int, visible bigint, vectors float8, by_acl boolean, filtered boolean, in_lists int default null,
    out effort int, out candidates int, out enough int, out reason text
) returns record
language plpgsql stable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    about record;
    lists int := coalesce(in_lists, pgrag._index_lists(of_space));
    rank float8;
    needed float8;
    -- Who measures what the index loses may ask for more.
    asked text := coalesce(nullif(current_setting('pgrag.index_effort', true), ''), '1');
    more float8;
begin
    if not pg_input_is_valid(asked, 'float8') then
        raise exception 'the setting pgrag.index_effort is a number from 1 to 1,000, got "%"', left(asked, 100)
            using errcode = 'RG001', hint = 'To go by what was calibrated: reset pgrag.index_effort';
    end if;
    more := least(1000, greatest(1, asked::float8));
    effort := 0;
    select d.* into about from pgrag._dense_costs(of_space, visible, vectors, by_acl, lists) as d;
    -- Said of what the caller sees, whatever else there is.
    if about.visible_us < 1000 and (by_acl or about.exact_us < 1000) then
        reason := 'they are few';
        return;
    end if;
    if lists is null then
        reason := case of_space.index_kind when 'none' then 'the space has no index' else 'the index is not built' end;
        return;
    end if;
    -- Of what the index gives, twice k must be visible, and twice as many where a filter hides an unknown share, since it misses some of the
    -- farther ones. Codes order so roughly that it must be as many as reached the recall for ten.
    enough := greatest(20, case when filtered then 4 else 2 end * k);
    if of_space."precision" = 'bit' then
        enough := greatest(enough, about.least_effort * greatest(1, k / 10.0))::int;
    end if;
    -- So many of the nearest hold k, and so many hold these, if who sees them has nothing to do with the query.
    rank := k * vectors / greatest(visible, 1);
    needed := greatest(2.4 * k, enough) * vectors / greatest(visible, 1);
    -- Effort was measured for the ten nearest; farther ones need more. Codes tell questions apart worse than what they were measured by,
    -- which is made of the space's own vectors.
    effort := least(1e9, more * about.least_effort * sqrt(greatest(1, rank / 10)) * case of_space."precision" when 'bit' then 2 else 1 end)::int;
    if of_space.index_kind = 'hnsw' then
        -- A scan that goes on beyond ef_search returns what is near the rows that it saw, which need not be the nearest: a caller who sees
        -- none of those got 76 to 88 of a hundred.
        if needed > 1000 then
            effort := 0;
            reason := 'more than hnsw gives at once';
            return;
        end if;
        -- A filter is supposed to leave a third.
        effort := least(1000, greatest(effort, needed * case when filtered then 3 else 1 end))::int;
        candidates := effort;
    else
        effort := least(effort, lists)::int;
        -- All that stands in these lists, so that it can be counted, unless nearly all of it is visible anyway.
        candidates := case when visible < 0.9 * vectors then greatest(enough, ceil(effort * visible / lists::float8)) else enough end::int;
    end if;
    -- Much less than was to be expected: who sees the nearest has to do with the query, and what was found is at the index's rim.
    if not filtered and of_space.index_kind = 'hnsw' then
        enough := greatest(enough, 0.5 * candidates * visible / vectors)::int;
    elsif not filtered then
        enough := greatest(enough, 0.8 * candidates)::int;
        candidates := greatest(enough, candidates);
    end if;
    if about.effort_us * effort > 0.67 * about.exact_us then
        effort := 0;
        reason := 'cheaper than ' || of_space.index_kind;
    else
        reason := format('cheaper than exact over %s passages', visible);
    end if;
end
$$;

comment on function pgrag._index_effort(pgrag.space, int, bigint, float8, boolean, boolean, int) is
'Decides whether the approximate index of a space is worth trying, and with how much effort: ef_search of hnsw, probes of ivfflat; 0: compare all visible vectors.
visible: passages that the caller may see; vectors: all of the space. by_acl: whether they are found by their ACLs, or among all. filtered: whether a filter on metadata is still to be passed. in_lists: as if the index were built, with so many lists; NULL: as it is. candidates: rows to take from the index; enough: how many of them must be visible and pass the filter, if the nearest k are to be among them. reason: for search_dense''s plan.
The index is tried where it costs at most two thirds of an exact search. The setting pgrag.index_effort, 1 to 1,000, multiplies the effort that was calibrated. Error RG001: that is none.';
