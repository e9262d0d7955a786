from django.db import migrations

# Thai, Lao; Myanmar; Khmer; Japanese signs and kana; Chinese characters.
UNSPACED = (
    r"[\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u3005-\u3007\u3040-\u30FF\u31F0-\u31FF\u3400-\u4DBF\u4E00-\u9FFF"
    r"\uF900-\uFAFF\U00020000-\U0003FFFF]"
)
ACCENTS = r"[\u0300-\u036F\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF\uFE20-\uFE2F]"
SEPARATORS = r"[[:punct:][:space:][:cntrl:]]"
# ASCII is told by its length, and done in a fraction of the time.
FUNCTIONS = rf"""
CREATE FUNCTION config_split_words(value text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    folded text COLLATE "pg_c_utf8" := value;
BEGIN
    IF octet_length(value) > char_length(value) THEN
        folded := regexp_replace(normalize(folded, NFKD), '{ACCENTS}', '', 'g');
        folded := replace(translate(lower(folded COLLATE "pg_c_utf8"), 'ςıøłđ', 'σiold'), 'ß', 'ss');
        folded := regexp_replace(normalize(folded, NFKC) COLLATE "pg_c_utf8", '{SEPARATORS}', ' ', 'g');
        folded := regexp_replace(folded, '({UNSPACED}+)', ' \1 ', 'g');
    ELSE
        folded := regexp_replace(lower(folded), '{SEPARATORS}', ' ', 'g');
    END IF;
    RETURN array_remove(string_to_array(folded, ' '), '');
END $$;
CREATE FUNCTION config_index_words(value text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    words text[] := config_split_words(value);
BEGIN
    IF octet_length(value) > char_length(value) THEN
        words := words || ARRAY(
            SELECT string_agg(sign, '') OVER (PARTITION BY run ORDER BY place ROWS BETWEEN CURRENT ROW AND 15 FOLLOWING)
            FROM unnest(words) WITH ORDINALITY AS runs (word, run)
            CROSS JOIN LATERAL unnest(string_to_array(word, NULL)) WITH ORDINALITY AS signs (sign, place)
            WHERE word ~ '^{UNSPACED}'
        );
    END IF;
    RETURN ARRAY(SELECT DISTINCT left(word, 64) FROM unnest(words) AS word);
END $$;
"""


class Migration(migrations.Migration):
    # Nothing waits for these functions, which nobody calls yet.
    atomic = False

    dependencies = [
        ("config", "0008_erasures"),
    ]

    operations = [
        migrations.RunSQL(
            FUNCTIONS,
            "DROP FUNCTION config_index_words(text); DROP FUNCTION config_split_words(text)",
        ),
    ]
