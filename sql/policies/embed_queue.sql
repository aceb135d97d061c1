-- Who sees rows of embed_queue: writers and the owner, no reader.
select pgrag._private_policies('embed_queue', written => true);
