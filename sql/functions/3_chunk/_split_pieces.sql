-- Cuts a line that is too long at sentence ends, what is still too long at spaces, and what is still too long anywhere.
create or replace function pgrag._split_pieces(line text, max_tokens int)
returns table (piece text, characters int, octets int, units int)
language sql
immutable
parallel safe
strict
rows 100
security invoker
begin atomic
    with mark as materialized (
        -- A character that isn't in the line marks where to cut. Where none is left, the line falls apart into characters.
        select (
            select candidate.mark
            from unnest(string_to_array(E'\u0001 \u0002 \u0003 \u0004 \u0005 \u0006 \u0007 \ue000 \ue001 \ufdd0 \ufdd1', ' ')) as candidate (mark)
            where strpos(line, candidate.mark) = 0
            order by candidate.mark
            limit 1
        ) as mark
    ),

    sentence as (
        select mark.mark, s.piece, s.place
        from mark
        cross join lateral string_to_table(
            coalesce(regexp_replace(
                line, '([.!?…][])"''”’»]*[[:space:]]+|[。！？；]+[」』”）]*)(?=[^[:space:]])', '\1' || mark.mark, 'g'
            ), line),
            mark.mark
        ) with ordinality as s (piece, place)
    ),

    word as (
        select sentence.mark, w.piece, sentence.place, w.place as place_2
        from sentence
        cross join lateral string_to_table(
            case when pgrag._estimate_tokens(sentence.piece) <= max_tokens then sentence.piece
                else regexp_replace(sentence.piece, '([[:space:]]+)(?=[^[:space:]])', '\1' || sentence.mark, 'g')
            end,
            sentence.mark
        ) with ordinality as w (piece, place)
    ),

    bit as (
        select b.piece, word.place, word.place_2, b.place as place_3
        from word
        cross join lateral string_to_table(
            case when pgrag._estimate_tokens(word.piece) <= max_tokens then word.piece
                else regexp_replace(
                    word.piece, '(.{' || least(255, greatest(1, max_tokens / 4))::text || '})(?=.)', '\1' || word.mark, 'g'
                )
            end,
            word.mark
        ) with ordinality as b (piece, place)
    )

    select
        bit.piece,
        length(bit.piece),
        octet_length(bit.piece),
        regexp_count(bit.piece, '[[:alnum:]]+|[^[:alnum:][:space:]]')
    from bit
    order by bit.place, bit.place_2, bit.place_3;
end;

comment on function pgrag._split_pieces(text, int) is
'The pieces of a line, in order, that make the line again when joined; each within max_tokens by _estimate_from_counts().
Spaces stay at the end of the piece before the cut. Pieces are sentences, words of sentences that are too long, and parts of
words that are too long: the caller joins neighbours that fit together. NULL gives no row.';
