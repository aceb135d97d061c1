-- Who sees rows of document_text: whoever its ACL lets read.
select pgrag._content_policies('document_text');
