import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: ['utility', 'metersync', 'reads', 'ops'].map((name) => `db/schema/${name}.ts`),
  out: 'db/migrations',
});
