-- Compares two states of a document field by field.
create or replace function analytics.bill_differences (
  old_raw jsonb, old_deleted_at timestamptz, raw jsonb, deleted_at timestamptz
) returns table (seq integer, field text, old_value text, new_value text)
language sql stable parallel safe
begin atomic
  select compared.seq, compared.field, compared.old_value, compared.new_value
  from analytics.read_bill(old_raw) as o
    cross join analytics.read_bill(raw) as n
    cross join analytics.read_bill_usage(old_raw) as ou
    cross join analytics.read_bill_usage(raw) as nu
    cross join lateral (
      values
        (
          1, 'cost',
          coalesce(o.current_charges, o.total_charges)::text,
          coalesce(n.current_charges, n.total_charges)::text
        ),
        (2, 'total_charges', o.total_charges::text, n.total_charges::text),
        (3, 'currency', o.currency, n.currency),
        (4, 'usage', ou.usage::text, nu.usage::text),
        (5, 'usage_units', ou.usage_units, nu.usage_units),
        (6, 'period_start', o.start_date::text, n.start_date::text),
        (7, 'period_end', o.end_date::text, n.end_date::text),
        (8, 'bill_date', o.bill_date::text, n.bill_date::text),
        (9, 'due_date', o.due_date::text, n.due_date::text),
        (10, 'account_number', o.account_number, n.account_number),
        (11, 'invoice_id', o.invoice_id, n.invoice_id),
        (12, 'is_estimated', o.is_estimated::text, n.is_estimated::text),
        (13, 'is_flagged', o.is_flagged::text, n.is_flagged::text),
        (14, 'revised_document_id', old_raw ->> 'revisedDocumentId', raw ->> 'revisedDocumentId'),
        (15, 'deleted_at', old_deleted_at::text, deleted_at::text)
    ) as compared (seq, field, old_value, new_value)
  where compared.old_value is distinct from compared.new_value;
end;
comment on function analytics.bill_differences is
  'The fields in which two states of a document differ.';
