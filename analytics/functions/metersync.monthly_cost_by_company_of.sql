{{months_of of="monthly_cost_by_company"}}
