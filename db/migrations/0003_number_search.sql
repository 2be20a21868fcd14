-- floor: 2
-- squawk-ignore-file require-concurrent-index-creation
-- Bills are searched by the number of their invoice or account.
create index "documents_numbers" on "utility"."documents" using gin (
  (array[raw ->> 'invoiceId', raw ->> 'accountNumber'])
);
