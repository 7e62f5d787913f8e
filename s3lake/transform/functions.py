"""Which of Spark's functions a sink's SQL may call: those whose result depends on the record and on nothing else."""

from __future__ import annotations

import difflib

_GROUPS = {
    "conditions and conversions": (
        "assert_true between bigint binary boolean cast char coalesce date decimal double equal_null float greatest "
        "if ifnull ilike in int isnan isnotnull isnull least like nanvl nullif nullifzero nvl nvl2 raise_error regexp "
        "regexp_like rlike smallint string timestamp tinyint try_cast typeof varchar zeroifnull"
    ),
    "arrays, maps and structs": (
        "aggregate array array_append array_compact array_contains array_distinct array_except array_insert "
        "array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat "
        "array_size array_sort array_union arrays_overlap arrays_zip cardinality concat element_at exists filter "
        "flatten forall get map map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries "
        "map_keys map_values map_zip_with named_struct reduce reverse sequence size slice sort_array str_to_map "
        "struct transform transform_keys transform_values try_element_at zip_with"
    ),
    "dates and times": (
        "add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc "
        "dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime "
        "from_utc_timestamp hour last_day make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz "
        "make_timestamp_ntz make_ym_interval minute month monthname months_between next_day quarter second "
        "timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp "
        "to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_interval "
        "try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_to_timestamp unix_date unix_micros "
        "unix_millis unix_seconds unix_timestamp weekday weekofyear year"
    ),
    "numbers and bits": (
        "abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bitmap_bit_position bitmap_bucket_number "
        "bitmap_count bround cbrt ceil ceiling conv cos cosh cot csc degrees div e exp expm1 factorial floor getbit "
        "hex hll_sketch_estimate hll_union hypot ln log log10 log1p log2 mod negative pi pmod positive pow power "
        "radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add "
        "try_divide try_mod try_multiply try_subtract unhex width_bucket"
    ),
    "texts, hashes and addresses": (
        "ascii base64 bit_length btrim char_length character_length chr collate collation concat_ws contains crc32 "
        "decode elt encode endswith find_in_set format_number format_string hash initcap instr is_valid_utf8 lcase "
        "left len length levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask md5 octet_length overlay "
        "parse_url position printf regexp_count regexp_extract regexp_extract_all regexp_instr regexp_replace "
        "regexp_substr repeat replace right rpad rtrim sentences sha sha1 sha2 soundex space split split_part "
        "startswith substr substring substring_index to_binary to_char to_number to_varchar translate trim "
        "try_parse_url try_to_binary try_to_number try_url_decode try_validate_utf8 ucase unbase64 upper url_decode "
        "url_encode validate_utf8 xxhash64"
    ),
    "JSON, CSV, variants, XML by path": (
        "from_csv from_json get_json_object is_variant_null json_array_length json_object_keys parse_json "
        "schema_of_csv schema_of_json schema_of_variant to_csv to_json to_variant_object to_xml try_parse_json "
        "try_variant_get variant_get xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number "
        "xpath_short xpath_string"
    ),
}
ALLOWED = frozenset(" ".join(_GROUPS.values()).split())
"""Names in lower case."""

_REASONS = {
    "runs code of the JVM": ("java_method reflect try_reflect"),
    "reads a file or what a file says": (
        "from_avro from_protobuf from_xml schema_of_avro schema_of_xml to_avro to_protobuf"
    ),
    "tells of the session or the machine and not of the record": (
        "collations current_catalog current_database current_schema current_timezone current_user "
        "input_file_block_length input_file_block_start input_file_name monotonically_increasing_id session_user "
        "spark_partition_id sql_keywords user version"
    ),
    "gives something else each time, and a micro-batch tried again would hold other values: take _timestamp, or the "
    "transform InsertWallclock or iggy.add_fields": (
        "curdate current_date current_time current_timestamp localtimestamp now rand randn random randstr shuffle "
        "uniform uuid"
    ),
    "needs a key, which would stand in the configuration and in Spark's plans: take sha2, or the transform MaskField": (
        "aes_decrypt aes_encrypt try_aes_decrypt"
    ),
    "is an aggregate, and SQL works on one record at a time": (
        "any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor "
        "bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count count_if "
        "count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id histogram_numeric "
        "hll_sketch_agg hll_union_agg kurtosis last last_value listagg max max_by mean median min min_by mode "
        "percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept "
        "regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness some std stddev stddev_pop "
        "stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance"
    ),
    "looks at other records, and SQL works on one record at a time": (
        "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window window_time"
    ),
    "makes several rows of a record, and a record lands once": (
        "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack variant_explode "
        "variant_explode_outer"
    ),
}
REFUSED = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Functions of Spark 4 that are not allowed, and why."""


def refusal(name: str) -> str | None:
    """Why a function may not be called, None where it may."""
    lowered = name.lower()
    if lowered in ALLOWED:
        return None
    if lowered in REFUSED:
        return f"{name} {REFUSED[lowered]}"
    near = difflib.get_close_matches(lowered, ALLOWED, 3)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{name} is none of the functions of Spark 4 that are allowed; {meant}docs/transforms.md has all of them"
