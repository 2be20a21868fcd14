{{months_of of="monthly_by_site"}}
