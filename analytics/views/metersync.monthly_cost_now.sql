create or replace view metersync.monthly_cost_now as
{{monthly_cost costs="analytics.bill_costs"}};
comment on view metersync.monthly_cost_now is 'Cost by month, computed from the records.';
