-- Lists the different words of a text, whatever their case.
create or replace function pgrag._words(content text) returns text[]
language sql immutable parallel safe strict security invoker
begin atomic
select coalesce(array_agg(w.word order by w.word), '{}')
from (
    -- Of "The" and "the" the greater in C order, which is the one with fewer capitals.
    select max(m.found[1] collate "C") as word
    from regexp_matches(content, '[[:alnum:]]+(?:[''’][[:alnum:]]+)*', 'g') as m (found)
    group by lower(m.found[1])
) as w;
end;

comment on function pgrag._words(text) is
'Lists the different words of a text: letters and digits with apostrophes between them. Words that differ in case are one, written with the fewest capitals. Empty for a text without words, NULL for NULL.';
