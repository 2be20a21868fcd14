{{sums_of of="monthly_usage_by_company" by="monthly_usage_by_company_of" now="monthly_usage_by_company_now"}}
