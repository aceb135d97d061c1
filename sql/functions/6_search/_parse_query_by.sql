-- Reads a query by every analyzer that it may meet, as one.
create or replace function pgrag._parse_query_by(
    analyzers text[],
    query text,
    out terms text[],
    out counts int[],
    out prefixes text[],
    out required tsquery,
    out excluded tsquery,
    out problems text[]
)
returns record
language plpgsql immutable parallel safe strict security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    one record;
    nth int := 0;
    places int[];
    free boolean := false;
begin
    if cardinality(analyzers) = 1 then
        select p.terms, p.counts, p.prefixes, p.required, p.excluded, p.problems
        into terms, counts, prefixes, required, excluded, problems
        from pgrag._parse_query(analyzers[1] collate "default", query) as p;
        return;
    end if;
    terms := '{}';
    counts := '{}';
    prefixes := '{}';
    problems := '{}';
    places := '{}';
    for one in
        select p.*
        from unnest(analyzers) with ordinality as a (analyzer, place)
        cross join lateral pgrag._parse_query(a.analyzer collate "default", query) as p
        order by a.place
    loop
        terms := terms || one.terms;
        counts := counts || one.counts;
        places := places || array(select u.place + nth * 10000 from generate_subscripts(one.terms, 1) as u (place));
        prefixes := prefixes || one.prefixes;
        problems := problems || one.problems;
        -- Whoever finds no word in a phrase asks nothing of a chunk.
        free := free or one.required is null;
        required := coalesce(required || one.required, one.required, required);
        excluded := coalesce(excluded || one.excluded, one.excluded, excluded);
        nth := nth + 1;
    end loop;
    if free then
        required := null;
    end if;
    select coalesce(array_agg(u.term order by u.place), '{}'), coalesce(array_agg(u.n order by u.place), '{}')
    into terms, counts
    from (
        select t.term, max(t.n) as n, min(t.place) as place
        from unnest(terms, counts, places) as t (term, n, place)
        group by t.term
    ) as u;
    prefixes := array(select distinct p.beginning collate "C" from unnest(prefixes) as p (beginning) order by 1);
    problems := array(
        select p.problem from unnest(problems) with ordinality as p (problem, place) group by p.problem order by min(p.place)
    );
end
$$;

comment on function pgrag._parse_query_by(text[], text) is
'One row that says what a query looks for in passages of several languages: what pgrag._parse_query makes of it by each analyzer, as one.
analyzers: without duplicates; their order is that of the terms. terms are distinct, and each counts as often as with the analyzer that makes it most often. A chunk must have the phrases as any one analyzer reads them, and none of the exclusions as any reads them; required is NULL where some analyzer finds no word in the phrases, since a chunk of its language need not have any. problems of all. Errors: RG010, and RG011, whose limits hold for each analyzer.
NULL arguments give a row of NULLs.';
