/** Rows of a small warehouse in which every example of docs/guides/warehouse.md has results. */
export const warehouseRows = `
  insert into utility.companies (id, raw) values
    ('c0000000-0000-4000-8000-000000000001', '{"externalId": "acme", "name": "Acme"}');
  insert into utility.sites (id, company_id, raw) values
    ('50000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001', '{"name": "Main street"}');
  insert into utility.connections (id, company_id, raw) values
    ('40000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
      '{"datasource": "City Power", "status": "PASSWORD_INCORRECT",
        "statusErrorDetail": "the portal refused the password", "updated": "2026-03-01"}');
  insert into utility.connection_status_changes (connection_id, old_status, status, at, event_id) values
    ('40000000-0000-4000-8000-000000000001', 'CONNECTED', 'PASSWORD_INCORRECT', '2026-03-01', 'msg_1');
  insert into utility.connection_sites (connection_id, site_id, account_ids, datasource_types) values
    ('40000000-0000-4000-8000-000000000001', '50000000-0000-4000-8000-000000000001', '{A-1}', '{ELECTRICITY}');
  insert into utility.meters (id, company_id, raw) values
    ('meter-1', 'c0000000-0000-4000-8000-000000000001',
      '{"site": "50000000-0000-4000-8000-000000000001", "datasourceType": "ELECTRICITY"}');
  insert into utility.documents (id, company_id, raw, absent_since, absent_by) values
    ('d0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
      '{"billDate": "2026-01-31", "chargesUnits": "USD", "totalCharges": "120.50", "revisedDocumentId": null,
        "updated": "2026-02-01"}', null, null),
    ('d0000000-0000-4000-8000-000000000002', 'c0000000-0000-4000-8000-000000000001',
      '{"billDate": "2025-12-31", "chargesUnits": "USD", "totalCharges": "99.00", "updated": "2026-02-02"}',
      '2026-02-03', 'absent');
  insert into utility.usage_data (id, company_id, document_id, meter_id, start_date, end_date, usage, usage_units) values
    ('a0000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001',
      'd0000000-0000-4000-8000-000000000001', 'meter-1', '2025-11-01', '2025-11-30', 1000.25, 'kWh'),
    ('a0000000-0000-4000-8000-000000000002', 'c0000000-0000-4000-8000-000000000001',
      'd0000000-0000-4000-8000-000000000001', 'meter-1', '2026-01-01', '2026-01-31', 1100.75, 'kWh');
  select metersync.ensure_interval_month('2026-01-01');
  insert into utility.intervals (meter_id, start_at, granularity_seconds, usage_units, usage, quality, synced_at) values
    ('meter-1', '2026-01-05 00:00Z', 900, 'kWh', 1.25, 'ACTUAL', now()),
    ('meter-1', '2026-01-05 00:15Z', 900, 'kWh', 2.5, 'ACTUAL', now()),
    ('meter-1', '2026-01-05 01:00Z', 900, 'kWh', 0.5, 'ESTIMATED', now());
  insert into metersync.runs (run_id, company_id, resource, state, finished_at, pages, total_said, distinct_ids, rows_inserted)
  values
    ('70000000-0000-4000-8000-000000000001', null, null, 'complete', now(), 1, null, null, 1),
    ('70000000-0000-4000-8000-000000000001', 'c0000000-0000-4000-8000-000000000001', 'documents', 'complete', now(), 1, 1, 1, 1);
`;
