import type { FastifyInstance } from 'fastify';
import { type Assets, serveAssets } from '../../web/document.ts';
import { takeForms } from '../../web/form.ts';
import { notFound } from '../problem.ts';
import { endpointRoutes } from './endpoints.ts';
import { inboxPages, inboxRoute } from './inbox.ts';
import { messageRoutes } from './message.ts';
import { messagesRoute } from './messages.ts';
import { replayRoutes } from './overview.ts';
import { doorRoute, type PortalDependencies, requireLink, showProblems } from './session.ts';
import { settingsRoutes } from './settings.ts';
import { testingRoutes } from './testing.ts';

export const at = (name: string): string => new URL(`./assets/${name}`, import.meta.url).href;

/** Files that this site has in addition to those that all sites share. */
export const own: Assets = {
  styles: { 'portal.css': at('portal.css'), 'messages.css': at('messages.css') },
  scripts: { 'portal.js': at('portal.js') },
};

/** The webhook portal (service.md 6.5) below `/portal`; `POST /external/configure_webhook` links to it. */
export function portalRoutes(app: FastifyInstance, dependencies: PortalDependencies): void {
  const { pool, clock, report } = dependencies;
  inboxRoute(app, dependencies);
  app.register(async (portal) => {
    const assets = await serveAssets(portal, '/portal/assets', own);
    showProblems(portal, assets, report);
    doorRoute(portal, { pool, clock, assets });
    portal.register(
      async (pages) => {
        takeForms(pages);
        requireLink(pages, { pool, clock, assets });
        endpointRoutes(pages, dependencies);
        settingsRoutes(pages, dependencies);
        testingRoutes(pages, dependencies);
        replayRoutes(pages, dependencies);
        inboxPages(pages, dependencies);
        messagesRoute(pages, dependencies);
        messageRoutes(pages, dependencies);
        pages.get('/', (request, reply) => reply.redirect(`${request.portal.frame.base}/endpoints`, 303));
        pages.get('/*', () => Promise.reject(notFound('Page')));
      },
      { prefix: '/portal/o/:link' },
    );
  });
}
