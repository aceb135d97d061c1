-- Turns the ACLs that a database role may read through into a bit string.
create or replace function pgrag._compute_acl_bits(who name) returns bit varying
language sql stable parallel safe security definer
set search_path = pg_catalog, pg_temp
as $$
    -- 32 ACLs a word: one word of the string at a time.
    with word as (
        select v.acl_id / 32 as place, bit_or(1::bigint << (31 - v.acl_id % 32)) as value
        from unnest(pgrag.visible_acl_ids(who)) as v (acl_id)
        group by v.acl_id / 32
    )
    select coalesce(string_agg(coalesce(w.value, 0)::bit(32)::text, '' order by g.place)::bit varying, B'')
    from generate_series(0, (select max(w.place) from word as w)) as g (place)
    left join word as w on w.place = g.place
$$;

comment on function pgrag._compute_acl_bits(name) is
'Turns the ACLs that a database role may read through into a bit string: bit number acl_id, from 0, is 1 where it may.
Empty for nobody. As long as its last visible ACL needs; what is beyond is invisible.';
