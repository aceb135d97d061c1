-- Who sees rows of run_hit: writers and the owner, no reader.
select pgrag._private_policies('run_hit', written => true);
