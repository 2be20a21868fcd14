{{sums_of of="monthly_usage_by_site" by="monthly_usage_by_site_of" now="monthly_usage_by_site_now"}}
