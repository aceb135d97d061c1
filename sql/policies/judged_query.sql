-- Who sees rows of judged_query: writers and the owner, no reader.
select pgrag._private_policies('judged_query', written => true);
