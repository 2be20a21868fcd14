{{months_of of="monthly_usage"}}
