-- Writes one attribute of a fence, or nothing where there is no value.
create or replace function pgrag._fence_attribute(name text, value text, longest int) returns text
language sql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
select coalesce(' ' || name || '="' || replace(replace(replace(replace(
    case when length(v.clean) > longest then left(v.clean, longest - 1) || '…' else v.clean end,
    '&', '&amp;'), '"', '&quot;'), '<', '&lt;'), '>', '&gt;') || '"', '')
from (
    select nullif(btrim(regexp_replace(
        pgrag._without_fences(pgrag._visible_text(value)), '[[:space:]\u2028\u2029]+', ' ', 'g'
    )), '') as clean
) as v;
$$;

comment on function pgrag._fence_attribute(text, text, int) is
'Writes one attribute of a fence with a space before it; nothing where the value is NULL or blank.
Invisible characters are removed, white space and line ends become one space, & " < > are escaped, and what is longer than `longest` characters is cut and ends with an ellipsis.';
