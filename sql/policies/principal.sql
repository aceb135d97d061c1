-- Who sees rows of principal: writers and the owner, no reader.
select pgrag._private_policies('principal', written => true);
