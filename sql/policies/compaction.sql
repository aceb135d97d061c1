-- Who sees rows of compaction: the owner alone.
select pgrag._private_policies('compaction', written => false);
