-- Writes down what happens to documents, and analyses their chunks anew where the language changes.
-- Not where row_security is off, as pg_dump's scripts set it: they bring what the triggers made. Whoever the policies bind
-- can't write then.
create or replace trigger log_insert after insert on pgrag.document
referencing new table as new_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._log_document();

create or replace trigger log_update after update on pgrag.document
referencing old table as old_rows new table as new_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._log_document();

create or replace trigger reanalyze_update after update on pgrag.document
referencing old table as old_rows new table as new_rows
for each statement when (current_setting('row_security') = 'on') execute function pgrag._reanalyze_document();

create or replace trigger log_delete after delete on pgrag.document
referencing old table as old_rows for each statement when (current_setting('row_security') = 'on') execute function pgrag._log_document();

create or replace trigger refuse_truncate before truncate on pgrag.document
for each statement execute function pgrag._refuse_truncate();
