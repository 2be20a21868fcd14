{% test accepted_range(model, column_name, least=none, most=none) %}
select {{ column_name }}
from {{ model }}
where false
    {% if least is not none %}or {{ column_name }} < {{ least }}{% endif %}
    {% if most is not none %}or {{ column_name }} > {{ most }}{% endif %}
{% endtest %}
