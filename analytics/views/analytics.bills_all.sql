create or replace view analytics.bills_all as {{bills documents="utility.documents" at="null"}};

comment on view analytics.bills_all is
  'One row for each document: those that count (is_effective) and, with the reason, those that do not.';
