-- Who sees rows of judgement: writers and the owner, no reader.
select pgrag._private_policies('judgement', written => true);
