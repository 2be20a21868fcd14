-- Links that open an organization's webhook portal for a while (seed 4). Only the hash of a token is kept.
create table sandbox.portal_links (
  token_hash text primary key,
  organization_id uuid not null references sandbox.organizations,
  expires_at timestamp(6) not null
);
