-- Who sees rows of corpus_stat: whoever its ACL lets read.
select pgrag._content_policies('corpus_stat');
