// A client on the TypeScript SDK v2, which prints what it saw. usage: node typescript_v2_client.mjs modern|auto|legacy SERVER [ARG]...
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [mode, command, ...args] = process.argv.slice(2);
const saw = {};
const client = new Client({ name: 'typescript-v2', version: '1.0.0' }, {
  capabilities: { elicitation: { form: {} } },
  versionNegotiation: { mode: mode === 'modern' ? { pin: '2026-07-28' } : mode },
});
client.onerror = error => (saw.complaints ??= []).push(String(error).slice(0, 200));
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { answer: 'Because' } }));
let updated;
const update = new Promise(resolve => { updated = resolve; });
client.setNotificationHandler('notifications/resources/updated', async ({ params }) => updated(params.uri));
await client.connect(new StdioClientTransport({ command, args }));
const call = (name, args, options) => client.callTool({ name, arguments: args }, options);
const text = result => result.content[0].text;

saw.version = client.getNegotiatedProtocolVersion();
saw.server = client.getServerVersion()?.name;
saw.tools = (await client.listTools()).tools.map(tool => tool.name);
saw.sum = (await call('add', { a: 40, b: 2 })).structuredContent.sum;
const steps = [];
saw.slept = text(await call('sleep', { ms: 60, steps: 3 }, { onprogress: ({ progress }) => steps.push(progress) }));
saw.progress = steps;
const abort = new AbortController();
const asleep = call('sleep', { ms: 600_000, steps: 1000 }, { signal: abort.signal, onprogress: () => abort.abort('enough') });
saw.cancelled = await asleep.then(() => false, () => true);
saw.echo = text(await call('echo', { text: 'still here' }));
saw.error = await call('fail', { code: -5, message: 'no' }).then(() => null, error => error.code);
saw.answer = text(await call('ask', { question: 'Why?' }));
if (saw.version >= '2026') {
  const subscription = await client.listen({ resourceSubscriptions: ['demo://counter'] });
  saw.listens = subscription.honoredFilter.resourceSubscriptions;
  await call('touch', { uri: 'demo://counter' });
  saw.updated = await update;
  await subscription.close();
} else {
  await client.subscribeResource({ uri: 'demo://counter' });
  await call('touch', { uri: 'demo://counter' });
  saw.updated = await update;
}
await client.close();
console.log(JSON.stringify(saw));
