-- A delivery moves through its table twice and leaves an attempt: what guards those rows is paid for each time.
-- They are written by one statement each, from rows just read, so the checks could only ever say yes.
drop index sandbox.deliveries_open;
alter table sandbox.attempts drop constraint attempts_delivery_id_fkey;
alter table sandbox.deliveries drop constraint deliveries_event_seq_fkey;
alter table sandbox.deliveries drop constraint deliveries_endpoint_id_fkey;
-- Room on each page for the row's next versions.
alter table sandbox.deliveries set (fillfactor = 60);
