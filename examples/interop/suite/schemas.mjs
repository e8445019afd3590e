// Takes the official JSON schemas of the protocol out of the published conformance suite, which has them inside its bundle and in no file.
// usage: node schemas.mjs BUNDLE FOLDER    (writes FOLDER/schema-REVISION.json; exit 1 where the bundle is made otherwise)
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';

const [bundle, folder] = process.argv.slice(2);
const text = readFileSync(bundle, 'utf8');

const fail = what => {
  console.error(`schemas.mjs: ${what}`);
  process.exit(1);
};

// The object literal that begins here. Its strings are the only place where a brace is none.
function literal(from) {
  let depth = 0, quote = null;
  for (let at = from; at < text.length; at++) {
    const char = text[at];
    if (char === '\\') at++;
    else if (quote) quote = char === quote ? null : quote;
    else if (char === '`' || char === '"' || char === "'") quote = char;
    else if (char === '{') depth++;
    else if (char === '}' && --depth === 0) return text.slice(from, at + 1);
  }
  return fail('an object without an end');
}

// The table from revision to schema, its last key a constant of the bundle.
const table = /\{"2025-03-26":(\w+),"2025-06-18":(\w+),"2025-11-25":(\w+),\[\w+\]:(\w+)\}/.exec(text);
if (!table) fail('the bundle has no table of schemas');
const revisions = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
const found = revisions.map((revision, n) => {
  const start = new RegExp(`[,; ]${table[n + 1]}=(?=\\{\\$schema:)`).exec(text);
  if (!start) return fail(`the bundle has no schema for ${revision}`);
  // Without anything of Node's in reach: a literal needs nothing.
  const schema = runInNewContext(`(${literal(start.index + start[0].length)})`, Object.create(null), { timeout: 5000 });
  if (!(schema.$defs ?? schema.definitions)?.JSONRPCMessage) fail(`what stands for ${revision} is no schema of the protocol`);
  return [revision, schema];
});
mkdirSync(folder, { recursive: true });
for (const [revision, schema] of found) writeFileSync(`${folder}/schema-${revision}.json`, `${JSON.stringify(schema)}\n`);
