{{months_of of="monthly_usage_by_site"}}
