import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: ['db/schema/utility.ts', 'db/schema/metersync.ts'],
  out: 'db/migrations',
});
