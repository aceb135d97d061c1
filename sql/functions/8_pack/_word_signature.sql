-- Marks the words of a text in 1,024 bits, so that two texts can be told apart without comparing their words.
create or replace function pgrag._word_signature(words text[]) returns bit varying
language sql immutable parallel safe strict security invoker
begin atomic
select coalesce(bit_or(set_bit(
    repeat('0', 1024)::bit(1024), (hashtextextended(lower(w.word) collate "C", 0) & 1023)::int, 1
)), repeat('0', 1024)::bit(1024))
from unnest(words) as w (word);
end;

comment on function pgrag._word_signature(text[]) is
'Marks the words of a text in 1,024 bits, each at the place that its hash says, whatever its case.
Two signatures differ in no more bits than the texts have words that only one of them has. NULL gives NULL.';
