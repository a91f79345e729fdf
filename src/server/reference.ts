import type { JsonSchema, OpenApiDocument, OpenApiOperation } from './openapi.ts';

/*
 * The API as a page to read: text from our own document, escaped all the same, without scripts and without anything from
 * elsewhere.
 */

export const referenceStyle = `body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
h2 { margin-top: 3rem; border-bottom: 1px solid #ccc } h3 { margin-top: 2rem }
code, pre { font: 14px/1.4 ui-monospace, monospace } pre { background: #f4f4f4; padding: .75rem; overflow: auto }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #eee }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } pre { background: #242424 } h2, td, th { border-color: #444 } a { color: #8ab4f8 } }
`;

export function referencePage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const byTag = Map.groupBy(operations, ({ operation }) => operation.tags[0] ?? '');
  const sections = [...byTag].map(([tag, own]) => {
    const entries = own.map(({ path, method, operation }) => entry(method, path, operation)).join('');
    return `<h2 id="${escaped(tag)}">${escaped(tag)}</h2>${entries}`;
  });
  const contents = [...byTag.keys()].map((tag) => `<a href="#${escaped(tag)}">${escaped(tag)}</a>`).join(' · ');
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Mulligan: HTTP API</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="docs.css"></head><body>
<h1>Mulligan: HTTP API</h1><p>${escaped(String(document.info.description))} The same as a document for programs:
<a href="openapi.json">openapi.json</a>.</p><p>${contents}</p>${sections.join('')}</body></html>`;
}

function entry(method: string, path: string, operation: OpenApiOperation): string {
  const { operationId, summary, description = '', parameters = [], requestBody, responses } = operation;
  const rows = parameters.map(
    ({ name, in: place, required, description: about = '', schema }) =>
      `<tr><td><code>${escaped(name)}</code></td><td>${place}${required ? ', required' : ''}</td><td>${escaped(about || kindOf(schema))}</td></tr>`,
  );
  const answers = Object.entries(responses as Record<string, { description?: string }>).map(
    ([status, { description: about = 'A problem.' }]) =>
      `<tr><td>${escaped(status)}</td><td>${escaped(about)}</td></tr>`,
  );
  const body = requestBody?.content['application/json']?.schema;
  return `<h3 id="${escaped(operationId)}"><code>${method} ${escaped(path)}</code></h3><p>${escaped(summary)}. ${escaped(description)}</p>${
    rows.length === 0 ? '' : `<table>${rows.join('')}</table>`
  }${body === undefined ? '' : `<pre>${escaped(JSON.stringify(body, null, 2))}</pre>`}<table>${answers.join('')}</table>`;
}

function kindOf({ type, enum: values }: JsonSchema): string {
  return Array.isArray(values) ? values.join(', ') : String(type ?? '');
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
