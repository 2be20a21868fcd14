-- floor: 1
-- History looks for the run that reads a company with each row that changes. Without an index of its
-- own it read all parts of the company's runs, which are thousands after weeks of reconciles.
create index runs_running on metersync.runs(company_id, started_at)
where state = 'running';

--> statement-breakpoint
-- A catch-up looks for meters that only usage names. It read all usage of the company.
drop index utility.usage_data_company;

--> statement-breakpoint
create index usage_data_company on utility.usage_data(company_id, meter_id);
