-- Who sees rows of membership: the owner alone.
select pgrag._private_policies('membership', written => false);
