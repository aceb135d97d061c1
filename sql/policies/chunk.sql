-- Who sees rows of chunk: whoever its ACL lets read.
select pgrag._content_policies('chunk');
