-- Evaluation and observation: judged queries, runs, and a log of searches.
create table pgrag.judged_query (
    collection_id int not null,
    query_id text not null,
    query text not null,
    principals text[] not null default '{}',
    answer text,
    constraint judged_query_pkey primary key (collection_id, query_id),
    constraint judged_query_collection_id_fkey foreign key (collection_id)
    references pgrag.collection (collection_id) on delete cascade
);

comment on table pgrag.judged_query is 'A query with known answers, and who asks it.';
comment on column pgrag.judged_query.principals is 'Whom pgrag.act_as is called with; empty: public only.';
comment on column pgrag.judged_query.answer is 'What a good answer says; NULL: unknown.';

create table pgrag.judgement (
    judgement_id bigint generated always as identity,
    collection_id int not null,
    query_id text not null,
    uri text not null,
    char_start int,
    char_end int,
    grade int not null,
    quote text,
    constraint judgement_pkey primary key (judgement_id),
    constraint judgement_span_check check (
        (char_start is null) = (char_end is null) and (char_start is null or (char_start >= 0 and char_end > char_start))
    ),
    constraint judgement_judged_query_fkey foreign key (collection_id, query_id)
    references pgrag.judged_query (collection_id, query_id) on delete cascade
);

create unique index judgement_span_idx on pgrag.judgement (collection_id, query_id, uri, char_start, char_end) nulls not distinct;
comment on table pgrag.judgement is 'How well a document, or a span of its text, answers a judged query.';
comment on column pgrag.judgement.char_start is 'NULL: the whole document is judged.';
comment on column pgrag.judgement.grade is '0 or less: not relevant; higher is better.';
comment on column pgrag.judgement.quote is 'The text of the span when it was judged, by which a document that changed is told; NULL: unknown.';

create table pgrag.run (
    run_id bigint generated always as identity,
    collection_id int not null,
    name text not null,
    settings jsonb not null default '{}',
    metrics jsonb not null default '{}',
    started_at timestamptz not null default now(),
    finished_at timestamptz,
    figures jsonb not null default '{}',
    constraint run_pkey primary key (run_id),
    constraint run_collection_id_fkey foreign key (collection_id) references pgrag.collection (collection_id) on delete cascade
);

create index run_collection_id_idx on pgrag.run (collection_id);
comment on table pgrag.run is 'One evaluation of a collection: what was set, and what came out.';
comment on column pgrag.run.settings is 'Passport, collection settings and versions, so that the run can be repeated.';
comment on column pgrag.run.metrics is 'Means by arm and measure.';
comment on column pgrag.run.finished_at is 'NULL: under way, or interrupted.';
comment on column pgrag.run.figures is 'The rest of the run document, see pgrag.load_run: counterfactuals, latency_ms, bands, principals, system.';

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

create table pgrag.run_query (
    run_id bigint not null,
    query_id text not null,
    arm text not null,
    query text,
    principals text[] not null default '{}',
    visible bigint,
    metrics jsonb not null default '{}',
    stages_ms jsonb not null default '{}',
    constraint run_query_pkey primary key (run_id, query_id, arm),
    constraint run_query_visible_check check (visible >= 0),
    constraint run_query_metrics_check check (jsonb_typeof(metrics) = 'object'),
    constraint run_query_stages_ms_check check (jsonb_typeof(stages_ms) = 'object'),
    constraint run_query_run_id_fkey foreign key (run_id) references pgrag.run (run_id) on delete cascade
);

comment on table pgrag.run_query is 'What a run measured of one query by one arm.';
comment on column pgrag.run_query.query is 'Its text when the run was made.';
comment on column pgrag.run_query.principals is 'Who asked; empty: the public.';
comment on column pgrag.run_query.visible is 'Passages that the asker may see; NULL: not counted.';
comment on column pgrag.run_query.metrics is 'Values by measure.';
comment on column pgrag.run_query.stages_ms is 'Milliseconds by stage.';

create table pgrag.run_evidence (
    run_evidence_id bigint generated always as identity,
    run_id bigint not null,
    query_id text not null,
    uri text not null,
    char_start int,
    char_end int,
    grade int not null,
    stage text not null,
    rank int,
    detail jsonb not null default '{}',
    constraint run_evidence_pkey primary key (run_evidence_id),
    constraint run_evidence_key unique nulls not distinct (run_id, query_id, uri, char_start, char_end),
    constraint run_evidence_span_check check (
        (char_start is null) = (char_end is null) and (char_start is null or (char_start >= 0 and char_end > char_start))
    ),
    constraint run_evidence_stage_check check (
        stage in ('not_ingested', 'not_permitted', 'split', 'representation', 'ann', 'fusion', 'rerank', 'pack', 'kept')
    ),
    constraint run_evidence_rank_check check (rank >= 1),
    constraint run_evidence_detail_check check (jsonb_typeof(detail) = 'object'),
    constraint run_evidence_run_id_fkey foreign key (run_id) references pgrag.run (run_id) on delete cascade
);

comment on table pgrag.run_evidence is 'Where a run lost what answers a query, or that it kept it: one row a judgement with a grade above 0.';
comment on column pgrag.run_evidence.char_start is 'NULL: the whole document is the evidence.';
comment on column pgrag.run_evidence.stage is 'The first stage that lost it, or `kept`.';
comment on column pgrag.run_evidence.rank is 'Place in what was found, from 1; NULL: not found.';
comment on column pgrag.run_evidence.detail is 'What shows it: ranks by arm, the settings that would have kept it.';

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
