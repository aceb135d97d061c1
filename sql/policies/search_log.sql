-- Who sees rows of search_log: writers and the owner, no reader.
select pgrag._private_policies('search_log', written => true);
