-- floor: 1
-- Usage goes with its document. Before, usage that the document's record did not list stayed, and
-- without a listing of usage nothing else removed it.
update utility.usage_data u
set deleted_at = d.deleted_at,
  deleted_reason = 'document'
from utility.documents d
where d.id = u.document_id
  and d.deleted_at is not null
  and u.deleted_at is null;
