-- Fills the sentence of a check with the figures of a finding; times are shown by their day.
create or replace function ops.issue_sentence (check_name text, subject text, evidence jsonb)
returns text
language sql stable parallel safe
begin atomic
  with figures as (
    select evidence || jsonb_build_object(
      'subject', subject,
      'last_day', metersync.date_of(evidence ->> 'until') - 1
    ) as figures
  ), parts as (
    select
      part, place,
      regexp_replace(figures ->> part[2], '^(\d{4}-\d\d-\d\d)T.*$', '\1') as figure
    from figures
      cross join ops.data_issue_checks c
      cross join lateral regexp_matches(
        c.sentence, '([^{]*)(?:\{(\w+)(?:\|([^}]*))?\})?', 'g'
      ) with ordinality as p (part, place)
    where c.check_name = issue_sentence.check_name
  ), filled as (
    select string_agg(
      part[1] || case when part[2] is null then '' else coalesce(figure, part[3], 'none') end,
      ''
      order by place
    ) as sentence
    from parts
  )
  select coalesce(
    regexp_replace(
      regexp_replace(sentence, '\m1 (bill|day|reading|record|site|time)s\M', '1 \1', 'g'),
      '(covers|for|of) (\d{4}-\d\d-\d\d) to \2',
      '\1 \2', 'g'
    ),
    issue_sentence.check_name || ': ' || evidence::text
  )
  from filled;
end;
comment on function ops.issue_sentence is 'A finding as a sentence.';
