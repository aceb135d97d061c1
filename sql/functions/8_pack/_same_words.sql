-- Tells whether two texts say nearly the same in the same words.
-- J(A, B) = |A ∩ B| / |A ∪ B| over sets of words. Jaccard 1912.
create or replace function pgrag._same_words(a text[], b text[]) returns boolean
language plpgsql immutable parallel safe strict security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    at_least constant float8 := 0.9;
    negation constant text := '^(not?|never|none?|nor|neither|without|cannot|except|unless|only|keine?[mnrs]?|nicht|nie|ohne|ne|pas|jamais|sans|inte|ej|aldrig|utan|nunca|sin)$|n[''’]t$';
    fewer int := least(cardinality(a), cardinality(b));
    more int := greatest(cardinality(a), cardinality(b));
    only_one text[];
    shared int;
begin
    -- The smaller set can share no more than itself, and the larger is never larger than the union.
    if more = 0 or fewer < at_least * more then
        return false;
    end if;
    only_one := array(
        (select u.word from unnest(a) as u (word) where lower(u.word) <> all(select lower(v.word) from unnest(b) as v (word)))
        union all
        (select u.word from unnest(b) as u (word) where lower(u.word) <> all(select lower(v.word) from unnest(a) as v (word)))
    );
    shared := (fewer + more - cardinality(only_one)) / 2;
    return shared >= at_least * (shared + cardinality(only_one))
        and not exists (select from unnest(only_one) as o (word) where o.word ~ '[[:upper:][:digit:]]' or o.word ~* negation);
end
$$;

comment on function pgrag._same_words(text[], text[]) is
'Tells whether two texts say nearly the same in the same words: at least nine tenths of all their words are in both.
a and b are from pgrag._words. False wherever a word that only one of them has is a negation, has a digit or a capital letter: texts that differ in a number, a name or a "not" say different things, however alike they look. NULL gives NULL.';
