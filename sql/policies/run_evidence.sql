-- Who sees rows of run_evidence: writers and the owner, no reader.
select pgrag._private_policies('run_evidence', written => true);
