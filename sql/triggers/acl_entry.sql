-- Lets a change of ACL entries count at once.
create or replace trigger note_access_change after insert or update or delete on pgrag.acl_entry
for each statement execute function pgrag._note_access_change();
