-- What is installed here: one row, written by `pgrag upgrade`.
create table pgrag.installation (
    only_row boolean not null default true,
    version text not null,
    digest text not null,
    upgraded_at timestamptz not null default now(),
    constraint installation_pkey primary key (only_row),
    constraint installation_only_row_check check (only_row)
);

comment on table pgrag.installation is 'What is installed here: one row, written by pgrag upgrade.';
comment on column pgrag.installation.version is 'Release of the pgrag package that upgraded last.';
comment on column pgrag.installation.digest is 'sha256, in hex, of every repeatable SQL file that was run last.';
