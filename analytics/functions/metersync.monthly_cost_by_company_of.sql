{{sums_of of="monthly_cost_by_company" by="monthly_cost_by_company_of" now="monthly_cost_by_company_now"}}
