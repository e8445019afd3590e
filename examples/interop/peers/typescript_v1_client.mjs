// A client on the TypeScript SDK v1, which prints what it saw. usage: node typescript_v1_client.mjs legacy SERVER [ARG]...
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const [, command, ...args] = process.argv.slice(2);
const saw = {};
const client = new Client({ name: 'typescript-v1', version: '1.0.0' }, { capabilities: { elicitation: {} } });
client.onerror = error => (saw.complaints ??= []).push(String(error).slice(0, 200));
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { answer: 'Because' } }));
let updated;
const update = new Promise(resolve => { updated = resolve; });
client.setNotificationHandler(ResourceUpdatedNotificationSchema, async ({ params }) => updated(params.uri));
const transport = new StdioClientTransport({ command, args });
// v1 tells the transport the version that was agreed on, and nobody else.
transport.setProtocolVersion = version => { saw.version = version; };
await client.connect(transport);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const text = result => result.content[0].text;

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
await client.ping();
await client.subscribeResource({ uri: 'demo://counter' });
await call('touch', { uri: 'demo://counter' });
saw.updated = await update;
await client.close();
console.log(JSON.stringify(saw));
