-- Says whether the analyzer makes a joined name or an identifier of a text, or of a part of it.
create or replace function pgrag._snippet_holds(content text, analyzer text, lexeme text) returns boolean
language sql immutable parallel safe security invoker
begin atomic
-- A word that comes after all others: what the analyzer puts behind it was joined, or is an identifier.
select coalesce(bool_or(b.lexeme = _snippet_holds.lexeme), false)
from pgrag._snippet_behind(pgrag.analyze(analyzer, content || ' zzqx'), 'zzqx') as b (lexeme);
end;

comment on function pgrag._snippet_holds(text, text, text) is
'Says whether the analyzer makes a lexeme of a text, or of a part of it, as a joined name or as an identifier; not as a word.';
