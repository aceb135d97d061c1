-- Who sees rows of failure: writers and the owner, no reader.
select pgrag._private_policies('failure', written => true);
