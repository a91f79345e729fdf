import { openApiDocument } from '../openapi.ts';
import { referencePage, referenceStyle } from '../reference.ts';
import { type Route, route } from '../route.ts';

const TAG = 'documents';

/** `all` are the routes that the documents describe, these included. Each is made when it is first asked for, and kept. */
export function documentRoutes(all: () => readonly Route[]): readonly Route[] {
  let document: string | null = null;
  let page: string | null = null;

  const openApi: Route = route({
    method: 'GET',
    path: '/openapi.json',
    name: 'getOpenApi',
    tag: TAG,
    summary: 'This API as an OpenAPI 3.1 document',
    scopes: [],
    answers: { 200: { description: 'The document.' } },
    handle() {
      document ??= JSON.stringify(openApiDocument(all()));
      return new Response(document, { headers: { 'content-type': 'application/json' } });
    },
  });

  const reference: Route = route({
    method: 'GET',
    path: '/docs',
    name: 'getReference',
    tag: TAG,
    summary: 'This API as a page to read',
    scopes: [],
    answers: { 200: { description: 'A page without scripts.', type: 'text/html' } },
    handle() {
      page ??= referencePage(openApiDocument(all()));
      return new Response(page, { headers: { 'content-type': 'text/html; charset=utf-8' } });
    },
  });

  const style: Route = route({
    method: 'GET',
    path: '/docs.css',
    name: 'getReferenceStyle',
    tag: TAG,
    summary: 'How that page looks',
    scopes: [],
    answers: { 200: { description: 'A style sheet.', type: 'text/css' } },
    handle: () => new Response(referenceStyle, { headers: { 'content-type': 'text/css; charset=utf-8' } }),
  });

  return [openApi, reference, style];
}
