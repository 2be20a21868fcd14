{{sums_of of="monthly_cost_by_site" by="monthly_cost_by_site_of" now="monthly_cost_by_site_now"}}
