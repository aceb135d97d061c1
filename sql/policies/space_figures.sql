-- Who sees what was measured of a space: writers and the owner, no reader.
select pgrag._private_policies('space_figures', written => true);
