select metersync.comment_columns(view, '{
  "account_number": "Account at the provider, since.",
  "provider": "Utility that sent the bill.",
  "invoice_id": "The utility''s number of the bill, since.",
  "changed_at": "When the warehouse learnt of it: of the bill''s own change, or of that of the bill in its place.",
  "changed_by_kind": "event or run; NULL where neither is known.",
  "changed_by": "Id of the event or the run.",
  "fields": "What the bill tells otherwise, as bill_restatements names it; empty where another document changed.",
  "currency": "Currency of the amounts: never add those of several.",
  "cost_before": "What it added to sums; 0 where it did not count or the amount was of another currency, NULL where it told none.",
  "cost_after": "What it adds since, in the same way.",
  "cost_change": "How much sums changed with it.",
  "reason": "Why: how it was found deleted, the document that superseded it, or what brought it back; NULL for what was corrected in place, as the service tells no reason."
}')
from unnest(array['analytics.bill_changes', 'analytics.bill_corrections']::regclass[]) as view;
