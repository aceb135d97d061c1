-- They return more now.
drop function if exists pgrag.collections();
drop function if exists pgrag._visible_collections(text[]);

alter table pgrag.collection add column search_settings jsonb not null default '{}';
alter table pgrag.collection add constraint collection_search_settings_check check (jsonb_typeof(search_settings) = 'object');
comment on column pgrag.collection.search_settings is 'How a search that says nothing else is made: `depth`, `rrf_k`, `weights`, `fusion`; absent: the default of pgrag.search.';

alter table pgrag.judged_query add column answer text;
comment on column pgrag.judged_query.answer is 'What a good answer says; NULL: unknown.';

alter table pgrag.judgement add column quote text;
-- Half a span, which says nothing, passed the check.
alter table pgrag.judgement drop constraint judgement_span_check;
delete from pgrag.judgement where (char_start is null) <> (char_end is null);
alter table pgrag.judgement add constraint judgement_span_check check (
    (char_start is null) = (char_end is null) and (char_start is null or (char_start >= 0 and char_end > char_start))
);
comment on column pgrag.judgement.grade is '0 or less: not relevant; higher is better.';
comment on column pgrag.judgement.quote is 'The text of the span when it was judged, by which a document that changed is told; NULL: unknown.';

alter table pgrag.run add column finished_at timestamptz;
alter table pgrag.run add column figures jsonb not null default '{}';
comment on column pgrag.run.metrics is 'Means by arm and measure.';
comment on column pgrag.run.finished_at is 'NULL: under way, or interrupted.';
comment on column pgrag.run.figures is 'The rest of the run document, see pgrag.load_run: counterfactuals, latency_ms, bands, principals, system.';
-- A run of an earlier release was written when it was done.
update pgrag.run set finished_at = started_at;

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
