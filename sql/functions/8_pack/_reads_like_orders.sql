-- Tells whether a text reads like orders to the model that is given it.
create or replace function pgrag._reads_like_orders(content text) returns boolean
language plpgsql immutable parallel safe strict security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
    -- Matched in any case, after NFKC, with every run of white space as one space.
    patterns constant text[] := array[
        -- "ignore all previous instructions", "disregard the rules above", and so in German, French, Spanish, Swedish
        '\m(ignore|disregard|forget|override|bypass)( [[:alpha:]'']+){0,4}? (previous|prior|above|earlier|preceding|foregoing|system|existing|other)( [[:alpha:]]+)? (instruction|prompt|rule|guideline|direction|order|message|context|command|restriction)s?\M',
        '\m(ignore|disregard|forget|override|bypass) ([[:alpha:]'']+ ){0,3}(instructions|prompts?|rules|guidelines|everything|anything|all)( [[:alpha:]]+){0,4} (above|before|earlier|previously|so far|until now|system prompt)\M',
        '\m(ignorier|vergiss|missacht)[[:alpha:]]*( [[:alpha:]]+){0,3} (vorherigen?|bisherigen?|obigen?|vorigen?|früheren) (anweisung|instruktion|regel|befehl)',
        '\m(ignor|oubli)[[:alpha:]]*( [[:alpha:]]+){0,3} (instructions|consignes|règles|instrucciones|reglas)( [[:alpha:]]+){0,2} (précédentes|antérieures|ci-dessus|anteriores|previas)',
        '\m(ignorera|glöm|bortse från)( [[:alpha:]]+){0,3} (tidigare|föregående) (instruktion|anvisning|regl)',
        -- what the reader is, or is to become
        '\m(system|developer|hidden|initial) (prompt|message) ?[:=]|\m(your|the|a new) system prompt\M|\msystem prompts?\M',
        '\myou are now\M( (an?|the|in|no longer|my|free|acting|operating|unrestricted|allowed|authori[sz]ed)\M|[:,])|\mfrom now on,? you (are|will|must|should|answer|act)\M',
        '\m(pretend (to be|that you are|you are)|act as (if you|an? (ai|unrestricted|different|new) )|enter (developer|debug|maintenance|god|dan) mode|you are in (developer|debug|maintenance|god|dan) mode)',
        -- secrecy, and secrets
        '\m(do not|don[''’]t|never|without)( [[:alpha:]]+)? (tell|telling|inform|informing|alert|alerting|warn|warning|notify|notifying|mention|mentioning|reveal|revealing|disclose|disclosing)( [[:alpha:]]+){0,4} (user|reader|human|person asking|asker)\M',
        '\m(reveal|print|show|repeat|output|leak|expose)( me)? (your|the)( [[:alpha:]]+)? (prompt|instructions|system message)\M',
        -- addressed to a machine
        '\m(note|message|instruction|instructions|order|orders|attention|important|hello|dear)( [[:alpha:]]+){0,2}?( to| for)?( [[:alpha:]]+)? (ai|a\.i\.|llm|language model|chatbot|assistant)( [[:alpha:]]+){0,4} ?[:,]',
        '\m(ai|llm|language model|chatbot)s?( assistant)?s?( (reading|processing|summari[sz]ing|answering)( [[:alpha:]]+){0,4})? must\M|\mif you are an? (ai|llm|(large )?language model|chatbot|(ai )?assistant)\M|\mas an (ai|llm)( [[:alpha:]]+)? you must\M',
        -- marks of chat templates, and of the fence
        '<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|</?(system|assistant|instructions?)>',
        '[<‹] ?/? ?passage ?-'
    ];
    plain text := content;
begin
    if octet_length(plain) > length(plain) then
        plain := normalize(plain, nfkc);
    end if;
    plain := regexp_replace(plain, '[[:space:]]+', ' ', 'g');
    -- One expression: the server keeps only 32 compiled ones.
    return plain ~* array_to_string(patterns, '|');
end
$$;

comment on function pgrag._reads_like_orders(text) is
'Tells whether a text reads like orders to the model that is given it; a hint for people, and no wall: the fence is what marks a passage as data.
True where any of a short list of patterns occurs, in any case: to ignore, forget or override earlier instructions (also in German, French, Spanish and Swedish); a system prompt; "you are now", "from now on you", "pretend to be"; not to tell the user; to print the prompt; words addressed to an AI, assistant or language model; marks of chat templates; the fence of a passage. Other wordings and other languages pass. Comes after pgrag._visible_text. NULL gives NULL.';
