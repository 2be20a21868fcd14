{{sums_of of="monthly_by_site" by="monthly_by_site_of" now="monthly_by_site_now"}}
