-- Measures on this server what dense search decides by: what comparing costs, what the index costs, and how much effort it needs.
create or replace function pgrag.calibrate_space(space text, queries int default 100, recall float8 default 0.99) returns jsonb
language plpgsql volatile parallel unsafe security invoker
set search_path from current
set jit = off
set enable_sort = on
set enable_indexscan = on
as $$
declare
    of_space pgrag.space;
    vectors text;
    kind text;
    total bigint;
    lists int;
    near record;
    code bit varying;
    asked halfvec[];
    nearest float8[];
    found float8[];
    farthest float8[] := '{}';
    tried jsonb := '[]';
    started timestamptz;
    visited float8;
    us float8[] := '{}';
    exact_us float8;
    hidden_us float8;
    index_us float8;
    effort int;
    kept text;
    step int;
    hits int;
    measured jsonb;
begin
    perform pgrag._check_range('queries', queries, 1, 1000);
    if recall is null or not recall between 0.5 and 1 then
        raise exception 'recall must be between 0.5 and 1, got %', coalesce(recall::text, 'NULL')
            using errcode = 'RG001', hint = 'Leave it out for 0.99.';
    end if;
    select * into strict of_space from pgrag.space as s where s.space_id = pgrag._space_id(space);
    vectors := format('pgrag.%I', 'embedding_' || of_space.space_id);
    kind := of_space.index_kind;
    select n.distance, n.index_order into near from pgrag._nearness(of_space) as n;
    lists := pgrag._index_lists(of_space);
    execute format('select count(*) from %s', vectors) into total;
    -- Each is compared with all vectors: so few where there are many.
    select array_agg(s.embedding::halfvec) into asked
    from pgrag._sample_queries(space, least(queries, greatest(10, 5e7 / greatest(total, 1)))::int) as s;
    if coalesce(cardinality(asked), 0) = 0 then
        raise exception 'space "%" holds no vectors yet', space
            using errcode = 'RG005', hint = 'Let pgrag worker fill it first.';
    end if;

    -- Twice, since the first reads what isn't in memory.
    for step in 0 .. cardinality(asked) loop
        started := clock_timestamp();
        execute format(
            'select array(
                select m.distance from (select e.chunk_id, %s as distance from %s as e offset 0) as m
                order by m.distance, m.chunk_id limit 10
            )', near.distance, vectors
        ) into nearest using asked[greatest(step, 1)];
        if step > 0 then
            us := us || 1e6 * extract(epoch from clock_timestamp() - started) / total;
            farthest := farthest || nearest[cardinality(nearest)];
        end if;
    end loop;
    -- The least: the work is the same for all, and long statements are the ones that others interrupt.
    select min(u.one) into exact_us from unnest(us) as u (one);
    started := clock_timestamp();
    execute format('select count(*) from %s as e where substring($1, e.acl_id + 1, 1) = B''1''', vectors) into visited using B'0';
    hidden_us := 1e6 * extract(epoch from clock_timestamp() - started) / total;
    measured := jsonb_build_object(
        'exact_us', round(exact_us::numeric, 3), 'hidden_us', round(hidden_us::numeric, 3),
        'queries', cardinality(asked), 'at', to_jsonb(now()), 'server', current_setting('server_version')
    );

    if lists is not null then
        kept := coalesce(
            nullif(current_setting(case kind when 'hnsw' then 'hnsw.ef_search' else 'ivfflat.probes' end, true), ''),
            case kind when 'hnsw' then '40' else '1' end
        );
        perform set_config('enable_sort', 'off', true);
        foreach effort in array case kind
            when 'hnsw' then array[40, 60, 100, 150, 200, 300, 400, 500, 600, 800, 1000]
            else array(select distinct least(lists, ceil(power(1.5, s))::int) as probes from generate_series(0, 26) as s order by probes)
        end loop
            perform set_config(case kind when 'hnsw' then 'hnsw.ef_search' else 'ivfflat.probes' end, effort::text, true);
            hits := 0;
            us := '{}';
            for step in 1 .. cardinality(asked) loop
                if of_space."precision" = 'bit' then
                    code := pgrag._code(of_space.space_id, asked[step]::vector);
                end if;
                started := clock_timestamp();
                execute format(
                    'with near as materialized (
                        select e.chunk_id, %s as distance from %s as e order by %s limit $3
                    )
                    select array(select n.distance from near as n order by n.distance, n.chunk_id limit 10)',
                    near.distance, vectors, near.index_order
                ) into found
                using asked[step], code, case kind when 'hnsw' then effort else greatest(100, total * effort / lists) end;
                us := us || 1e6 * extract(epoch from clock_timestamp() - started);
                -- Of vectors that are as far as each other, such as those of equal texts, any will do.
                hits := hits + (select count(*) from unnest(found) as f (distance) where f.distance <= farthest[step] + 1e-9);
            end loop;
            visited := case kind when 'hnsw' then effort else total * effort::float8 / lists end;
            select percentile_cont(0.5) within group (order by u.one) / visited into index_us from unnest(us) as u (one);
            tried := tried || jsonb_build_object(
                'effort', effort, 'recall_at_10', round(hits / (least(10, total) * cardinality(asked))::numeric, 4),
                'ms', round((index_us * visited / 1000)::numeric, 3)
            );
            exit when hits >= recall * least(10, total) * cardinality(asked);
        end loop;
        perform set_config('enable_sort', 'on', true);
        perform set_config(case kind when 'hnsw' then 'hnsw.ef_search' else 'ivfflat.probes' end, kept, true);
        measured := measured || jsonb_build_object('index', kind, 'effort', effort, 'index_us', round(index_us::numeric, 3), 'tried', tried);
    end if;
    update pgrag.space as s set calibration = measured where s.space_id = of_space.space_id;
    return measured;
end
$$;

comment on function pgrag.calibrate_space(text, int, float8) is
'Measures on this server what dense search decides by, keeps it in space.calibration and returns it; without counts, since readers see it. To be run where the machine is as busy as it usually is, again when the space has doubled or the index was built anew.
queries: 1 to 1,000, made of pairs of the space''s own vectors; fewer, but ten, where more than 50 million distances were to be computed for them. recall: of the ten nearest, that the index must reach, 0.5 to 1.
exact_us: microseconds of comparing a vector, the least; hidden_us: of passing one by that the caller may not see; with an index also index_us: of each vector that it gives, the median, and effort: the least ef_search or probes that reach the recall, or the most there are; tried: recall and milliseconds of each. For members of pgrag_owner. Errors: RG001, RG005 no such space, or an empty one.';
