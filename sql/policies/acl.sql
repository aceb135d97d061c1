-- Who sees rows of acl: writers and the owner, no reader.
select pgrag._private_policies('acl', written => true);
