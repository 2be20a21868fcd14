-- Lists show and count the documents that are not deleted: from the index alone.
create index documents_kept on sandbox.documents (company_id, created, id) where deleted_at is null;
