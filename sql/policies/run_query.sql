-- Who sees rows of run_query: writers and the owner, no reader.
select pgrag._private_policies('run_query', written => true);
