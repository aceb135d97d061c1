-- Keeps everything that is derived from chunks: analysis, postings, statistics, the queue for vectors.
-- Not where row_security is off, as pg_dump's scripts set it: they bring what the triggers made. Whoever the policies bind
-- can't write then.
create or replace trigger analyze_chunk before insert or update of document_id, context, content, hash, tsv, lexeme_count, analyzer
on pgrag.chunk for each row when (current_setting('row_security') = 'on') execute function pgrag._analyze_chunk();

create or replace trigger index_insert after insert on pgrag.chunk
referencing new table as new_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._index_chunks();

create or replace trigger index_update after update on pgrag.chunk
referencing old table as old_rows new table as new_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._index_chunks();

create or replace trigger index_delete after delete on pgrag.chunk
referencing old table as old_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._index_chunks();

create or replace trigger queue_insert after insert on pgrag.chunk
referencing new table as new_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._queue_chunks();

create or replace trigger queue_update after update on pgrag.chunk
referencing old table as old_rows new table as new_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._queue_chunks();

create or replace trigger refuse_truncate before truncate on pgrag.chunk
for each statement execute function pgrag._refuse_truncate();
