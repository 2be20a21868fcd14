import { withClient } from '../stack.ts';
import { createWorld, worldSeed } from './world.ts';

/** Writes a load's world as rows, as a backfill would: most events find a row. `raw` has a real size. */
export async function fillWarehouse(url: string): Promise<void> {
  const { companies, connections, documents, meters } = createWorld(worldSeed);
  const fields = `(select jsonb_object_agg('field' || n, md5(id::text || n)) from generate_series(1, 24) n)`;
  await withClient(url, async (client) => {
    await client.query(
      `insert into utility.companies (id, raw, synced_at)
        select id, jsonb_build_object('externalId', external_id, 'publicId', public_id, 'name', name), now()
        from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as t (id, external_id, public_id, name)`,
      [
        companies.map((company) => company.id),
        companies.map((company) => company.externalId),
        companies.map((company) => company.publicId),
        companies.map((company) => company.name),
      ],
    );
    const sites = companies.flatMap((company) => company.sites.map((site) => ({ ...site, company })));
    await client.query(
      `insert into utility.sites (id, company_id, raw, synced_at)
        select id, company_id, jsonb_build_object('name', name), now()
        from unnest($1::uuid[], $2::uuid[], $3::text[]) as t (id, company_id, name)`,
      [sites.map((site) => site.id), sites.map((site) => site.company.id), sites.map((site) => site.name)],
    );
    await client.query(
      `insert into utility.connections (id, company_id, raw, synced_at)
        select id, company_id, ${fields} || jsonb_build_object('created', at, 'updated', at), now()
        from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as t (id, company_id, at)`,
      [
        connections.map((connection) => connection.id),
        connections.map((connection) => connection.company.id),
        connections.map((connection) => connection.created),
      ],
    );
    await client.query(
      `insert into utility.documents (id, company_id, raw, synced_at)
        select id, company_id, ${fields} || jsonb_build_object('site', site_id, 'created', at, 'updated', at), now()
        from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[]) as t (id, company_id, site_id, at)`,
      [
        documents.map((document) => document.id),
        documents.map((document) => document.company.id),
        documents.map((document) => document.site.id),
        documents.map((document) => document.created),
      ],
    );
    await client.query(
      `insert into utility.meters (id, company_id, raw, synced_at)
        select id, company_id, '{}', now() from unnest($1::text[], $2::uuid[]) as t (id, company_id)`,
      [meters.map((meter) => meter.id), meters.map((meter) => meter.company.id)],
    );
    await client.query('vacuum analyze');
  });
}
