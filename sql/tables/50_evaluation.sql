-- Evaluation and observation: judged queries, runs, and a log of searches.
create table pgrag.judged_query (
    collection_id int not null,
    query_id text not null,
    query text not null,
    principals text[] not null default '{}',
    constraint judged_query_pkey primary key (collection_id, query_id),
    constraint judged_query_collection_id_fkey foreign key (collection_id)
    references pgrag.collection (collection_id) on delete cascade
);

comment on table pgrag.judged_query is 'A query with known answers, and who asks it.';
comment on column pgrag.judged_query.principals is 'Whom pgrag.act_as is called with; empty: public only.';

create table pgrag.judgement (
    judgement_id bigint generated always as identity,
    collection_id int not null,
    query_id text not null,
    uri text not null,
    char_start int,
    char_end int,
    grade int not null,
    constraint judgement_pkey primary key (judgement_id),
    constraint judgement_span_check check (
        (char_start is null and char_end is null) or (char_start >= 0 and char_end > char_start)
    ),
    constraint judgement_judged_query_fkey foreign key (collection_id, query_id)
    references pgrag.judged_query (collection_id, query_id) on delete cascade
);

create unique index judgement_span_idx on pgrag.judgement (collection_id, query_id, uri, char_start, char_end) nulls not distinct;
comment on table pgrag.judgement is 'How well a document, or a span of its text, answers a judged query.';
comment on column pgrag.judgement.char_start is 'NULL: the whole document is judged.';
comment on column pgrag.judgement.grade is '0: not relevant; higher is better.';

create table pgrag.run (
    run_id bigint generated always as identity,
    collection_id int not null,
    name text not null,
    settings jsonb not null default '{}',
    metrics jsonb not null default '{}',
    started_at timestamptz not null default now(),
    constraint run_pkey primary key (run_id),
    constraint run_collection_id_fkey foreign key (collection_id) references pgrag.collection (collection_id) on delete cascade
);

create index run_collection_id_idx on pgrag.run (collection_id);
comment on table pgrag.run is 'One evaluation of a collection: what was set, and what came out.';
comment on column pgrag.run.settings is 'Passport, collection settings and versions, so that the run can be repeated.';

create table pgrag.run_hit (
    run_id bigint not null,
    query_id text not null,
    arm text not null,
    rank int not null,
    uri text not null,
    ordinal int not null,
    score float8 not null,
    constraint run_hit_pkey primary key (run_id, query_id, arm, rank),
    constraint run_hit_rank_check check (rank >= 1),
    constraint run_hit_run_id_fkey foreign key (run_id) references pgrag.run (run_id) on delete cascade
);

comment on table pgrag.run_hit is 'What a run found, best first.';

create table pgrag.search_log (
    search_log_id bigint generated always as identity,
    searched_at timestamptz not null default now(),
    query_hash bytea not null,
    hits int not null,
    stages_ms jsonb not null default '{}',
    constraint search_log_pkey primary key (search_log_id)
);

comment on table pgrag.search_log is 'Searches that were logged on request; the query is hashed.';
comment on column pgrag.search_log.stages_ms is 'Milliseconds by stage.';
