-- Who sees rows of document_history: writers and the owner, no reader.
select pgrag._private_policies('document_history', written => true);
