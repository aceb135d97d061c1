-- Who sees rows of acl_entry: writers and the owner, no reader.
select pgrag._private_policies('acl_entry', written => true);
