-- Makes harmless whatever in a text looks like the fence around a packed passage.
create or replace function pgrag._without_fences(content text) returns text
language sql immutable parallel safe strict security invoker
begin atomic
select regexp_replace(
    content, '[<＜﹤]([[:space:]\u00a0\u2000-\u200a\u3000]*[/／]?[[:space:]\u00a0\u2000-\u200a\u3000]*passage)', '‹\1', 'gi'
);
end;

comment on function pgrag._without_fences(text) is
'Makes harmless whatever in a text looks like the fence around a packed passage: the less-than sign before `passage` or `/passage` becomes ‹.
In any case, with any spaces between, and for the full-width and small signs too. Comes after pgrag._visible_text, which takes out what could stand between. The length stays. NULL gives NULL.';
