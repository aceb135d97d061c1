-- Who sees rows of lexeme: whoever its ACL lets read.
select pgrag._content_policies('lexeme');
