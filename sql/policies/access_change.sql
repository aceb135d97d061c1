-- Who sees rows of access_change: the owner alone.
select pgrag._private_policies('access_change', written => false);
