-- A time of the service: ISO 8601, or Unix seconds. What is finer than a microsecond is cut off and not rounded: an event may
-- tell a time more finely than its record does, which must not count as older for it.
CREATE OR REPLACE FUNCTION metersync.read_time(value text) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  select case
    when value ~ '^\d{4}-\d\d-\d\d' then
      case
        when length(value) > 26 then regexp_replace(value, '([.,]\d{6})\d+', '\1')::timestamptz
        else value::timestamptz
      end
    when value ~ '^\d{9,11}$' then to_timestamp(value::bigint)
    else ('not a time: ' || nullif(value, ''))::timestamptz
  end
$$;
--> statement-breakpoint
-- However a UUID is spelled: in capitals, without hyphens, in braces.
CREATE OR REPLACE FUNCTION metersync.uuid_of(value text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select case
    when value ~ '^(\{[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}|[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7})$' then value::uuid
  end
$$;
--> statement-breakpoint
-- An id that may be any text: of a UUID its one spelling.
CREATE FUNCTION metersync.canonical_id(value text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  select coalesce(metersync.uuid_of(value)::text, value)
$$;
