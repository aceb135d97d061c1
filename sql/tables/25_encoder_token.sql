-- Token vectors of the static query encoders, a table a space.
create table pgrag.encoder_token (
    space_id int not null,
    token text collate "C" not null,
    token_id int not null,
    embedding halfvec not null,
    constraint encoder_token_pkey primary key (space_id, token),
    constraint encoder_token_space_id_fkey foreign key (space_id) references pgrag.space (space_id) on delete cascade
);

comment on table pgrag.encoder_token is 'Token vectors of static encoders: a text''s vector is the normalised sum of its tokens''.';
