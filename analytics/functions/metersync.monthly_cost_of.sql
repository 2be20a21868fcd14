{{months_of of="monthly_cost"}}
