-- Names the space whose vectors a model's may be compared with.
create or replace function pgrag.model_space(model text, fingerprint text default null, usual text default null) returns text
language sql stable parallel safe security invoker
begin atomic
select coalesce(
    (select s.name from pgrag.space as s where s.name = usual),
    (
        select s.name
        from pgrag.collection as c
        inner join pgrag.space as s on s.space_id = c.active_space_id
        where s.passport ->> 'sha256' = fingerprint
            or (s.model = model_space.model and (s.passport ->> 'sha256' = fingerprint) is not false)
        order by s.name
        limit 1
    ),
    usual
);
end;

comment on function pgrag.model_space(text, text, text) is
'Names the space whose vectors a model''s may be compared with: `usual` if the caller sees a space of that name, else the first by name that answers a collection which they see and was made by the model, else `usual`.
model: as in the passport. fingerprint: sha256 of its weights, which decides where both sides have one. For a client that embeds queries by a model and doesn''t know which space is its.';
