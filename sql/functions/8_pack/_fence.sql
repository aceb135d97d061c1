-- Writes the line that opens the fence around a packed passage, and says where the passage is from.
create or replace function pgrag._fence(
    nonce text, passage_id text, title text, heading_path text[], uri text, page int
) returns text
language sql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as $$
select '<passage-' || nonce
    || pgrag._fence_attribute('id', passage_id, 20)
    || pgrag._fence_attribute('title', title, 200)
    || pgrag._fence_attribute('section', array_to_string(heading_path, ' › '), 200)
    || pgrag._fence_attribute('uri', uri, 2000)
    || pgrag._fence_attribute('page', page::text, 20)
    || '>';
$$;

comment on function pgrag._fence(text, text, text, text[], text, int) is
'Writes the line that opens the fence around a packed passage, and says where the passage is from: <passage-NONCE id="P1" title="…" section="A › B" uri="…" page="3">.
What is NULL or empty is left out. Title and section are cut at 200 characters.';
