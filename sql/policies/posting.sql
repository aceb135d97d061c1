-- Who sees rows of posting: whoever its ACL lets read.
select pgrag._content_policies('posting');
