-- Lists the ACLs the caller may read through, where they are few enough to be an index condition.
create or replace function pgrag._few_acl_ids() returns int[]
language sql stable parallel safe security invoker
begin atomic
with caller as materialized (
    -- Whoever writes sees more than what their ACLs show.
    select case
        when not pg_has_role(current_user, 'pgrag_writer', 'usage') and not pg_has_role(current_user, 'pgrag_owner', 'usage')
            then pgrag.visible_acl_bits(current_user)
    end as bits
)

select case
    -- Each piece between two ones is as long as there are zeros, and the rest after the last one is no ACL.
    when bit_count(b.bits) <= 256 then (
        select coalesce(array_agg(p.place::int order by p.place), '{}')
        from (
            select s.n, sum(octet_length(s.zeros) + 1) over (order by s.n) - 1 as place
            from string_to_table(b.bits::text, '1') with ordinality as s (zeros, n)
        ) as p
        where p.n <= bit_count(b.bits)
    )
end
from caller as b;
end;

comment on function pgrag._few_acl_ids() is
'Lists the ACLs the caller may read through, where they are few enough (256) to be an index condition; else, and for members of pgrag_writer and pgrag_owner, NULL, and the policy filters alone. Ascending; read off the bits that the policies go by. Only for speed: what is visible is the policy''s to say.';
