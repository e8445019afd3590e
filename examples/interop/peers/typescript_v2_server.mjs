// A server on the TypeScript SDK v2. usage: node typescript_v2_server.mjs modern|dual|legacy
import { Server, inputRequired } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';

const tool = (name, properties = {}) => ({
  name, description: name, inputSchema: { type: 'object', properties, required: Object.keys(properties) },
});
const tools = [
  tool('echo', { text: { type: 'string' } }), tool('add', { a: { type: 'number' }, b: { type: 'number' } }),
  tool('steps'), tool('hang'), tool('change'), tool('input'),
];
const text = text => ({ content: [{ type: 'text', text }] });

function create() {
  const server = new Server({ name: 'typescript-v2', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler('tools/list', async () => ({ tools }));
  server.setRequestHandler('tools/call', async ({ params: { name, arguments: args } }, { mcpReq }) => {
    switch (name) {
      case 'echo': return text(args.text);
      case 'add': return { ...text(String(args.a + args.b)), structuredContent: { sum: args.a + args.b } };
      case 'steps':
        for (let progress = 1; progress <= 3; progress++) {
          const progressToken = mcpReq._meta?.progressToken;
          if (progressToken === undefined) continue;
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 3 } });
        }
        return text('done');
      case 'hang':
        await new Promise(resolve => mcpReq.signal.addEventListener('abort', resolve));
        console.error('hang was cancelled');
        return text('too late');
      case 'change':
        await server.sendToolListChanged();
        return text('changed');
      case 'input': {
        // Of the modern era. What comes back is checked to the letter.
        const { name: user, where } = mcpReq.inputResponses ?? {};
        if (!user || !where) {
          return inputRequired({
            inputRequests: {
              name: inputRequired.elicit({
                message: 'Who are you?',
                requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
              }),
              where: inputRequired.listRoots(),
            },
            requestState: 'state “1”/\\\n',
          });
        }
        if (mcpReq.requestState() !== 'state “1”/\\\n') throw Object.assign(new Error('another state'), { code: -32602 });
        return text(`${user.content.name} in ${where.roots[0].uri}`);
      }
      default: throw Object.assign(new Error(`no tool ${name}`), { code: -32602 });
    }
  });
  return server;
}

if (process.argv[2] === 'legacy') await create().connect(new StdioServerTransport());
else serveStdio(create, { legacy: process.argv[2] === 'dual' ? 'serve' : 'reject' });
