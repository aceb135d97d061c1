-- Who sees rows of document: whoever its ACL lets read.
select pgrag._content_policies('document');
