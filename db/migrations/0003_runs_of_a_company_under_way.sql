-- floor: 1
-- History looks for the run that reads a company with each row that changes. Without an index of its
-- own it read all parts of the company's runs, which are thousands after weeks of reconciles.
create index runs_running on metersync.runs(company_id, started_at)
where state = 'running';
