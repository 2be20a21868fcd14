-- floor: 2
-- squawk-ignore-file require-concurrent-index-creation
-- Bills are searched by the number of their invoice or account. There is no list of pending entries, which now
-- and then a single write would have to work off.
create index "documents_numbers" on "utility"."documents" using gin (
  (array[raw ->> 'invoiceId', raw ->> 'accountNumber'])
)
with (fastupdate = off);
