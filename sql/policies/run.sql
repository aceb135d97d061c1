-- Who sees rows of run: writers and the owner, no reader.
select pgrag._private_policies('run', written => true);
