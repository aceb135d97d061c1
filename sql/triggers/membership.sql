-- Keeps groups free of circles, and lets a change of membership count at once; where row_security is off, too, as in a restore.
create or replace trigger check_membership before insert or update on pgrag.membership
for each row execute function pgrag._check_membership();

create or replace trigger note_access_change after insert or update or delete on pgrag.membership
for each statement execute function pgrag._note_access_change();
