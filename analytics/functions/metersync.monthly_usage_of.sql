{{months_of of="monthly_usage" joins="off"}}
