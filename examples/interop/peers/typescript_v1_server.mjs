// A server on the TypeScript SDK v1, which knows the handshake only.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const tool = (name, properties = {}) => ({
  name, description: name, inputSchema: { type: 'object', properties, required: Object.keys(properties) },
});
const tools = [
  tool('echo', { text: { type: 'string' } }), tool('add', { a: { type: 'number' }, b: { type: 'number' } }),
  tool('steps'), tool('hang'), tool('change'), tool('ask'),
];
const text = text => ({ content: [{ type: 'text', text }] });

const server = new Server({ name: 'typescript-v1', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: args, _meta } }, extra) => {
  switch (name) {
    case 'echo': return text(args.text);
    case 'add': return { ...text(String(args.a + args.b)), structuredContent: { sum: args.a + args.b } };
    case 'steps':
      for (let progress = 1; progress <= 3; progress++) {
        const progressToken = _meta?.progressToken;
        if (progressToken === undefined) continue;
        await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
      }
      return text('done');
    case 'hang':
      await new Promise(resolve => extra.signal.addEventListener('abort', resolve));
      console.error('hang was cancelled');
      return text('too late');
    case 'change':
      await server.sendToolListChanged();
      return text('changed');
    case 'ask':
      // A question that the client has no handler for: it must be refused, and the session must live on.
      try { return text(JSON.stringify((await server.listRoots()).roots)); } catch (error) { return text(`refused ${error.code}`); }
    default: throw Object.assign(new Error(`no tool ${name}`), { code: -32602 });
  }
});
await server.connect(new StdioServerTransport());
