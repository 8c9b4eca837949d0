// An agent served by the official JavaScript SDK of protocol 0.3, for a client to be tested against.
//
// It listens on the loopback interface, prints where its card is, and ends when its input does. The same agent as that
// of `../js`, as its SDK had it done then.

import { randomUUID } from 'node:crypto';

import { AGENT_CARD_PATH } from '@a2a-js/sdk';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import {
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
  UserBuilder,
} from '@a2a-js/sdk/server/express';
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import express from 'express';

const CHUNKS = ['one ', 'two ', 'three'];

const parts = (text) => [{ kind: 'text', text }];

const message = (text, taskId, contextId) => ({
  kind: 'message',
  messageId: randomUUID(),
  role: 'agent',
  parts: parts(text),
  taskId,
  contextId,
});

/** Does what the first word of a message says. */
class Words {
  /** What is held, with what lets it go. */
  held = new Map();
  /** Tasks that wait for the word `next` before each step: how often it came, and who waits. */
  steps = new Map();

  stepsOf(taskId) {
    if (!this.steps.has(taskId)) this.steps.set(taskId, { free: 0, waiting: [] });
    return this.steps.get(taskId);
  }

  async step(taskId) {
    const steps = this.stepsOf(taskId);
    if (steps.free) steps.free -= 1;
    else await new Promise((go) => steps.waiting.push(go));
  }

  next(taskId) {
    const steps = this.stepsOf(taskId);
    if (steps.waiting.length) steps.waiting.shift()();
    else steps.free += 1;
  }

  async execute({ userMessage, task, taskId, contextId }, bus) {
    const text = userMessage.parts.map((it) => it.text ?? '').join('\n');
    const [word, ...rest] = text.split(' ');
    if (word === 'message' || word === 'next') {
      if (word === 'next') this.next(rest[0]);
      bus.publish(message('Just this', undefined, contextId));
      bus.finished();
      return;
    }
    const answered = task?.status?.state === 'input-required';
    const now = () => new Date().toISOString();
    const status = (state, said, final = false) =>
      bus.publish({
        kind: 'status-update',
        taskId,
        contextId,
        status: { state, message: said && message(said, taskId, contextId), timestamp: now() },
        final,
      });
    const artifact = (artifactId, text, more = {}) =>
      bus.publish({
        kind: 'artifact-update',
        taskId,
        contextId,
        artifact: { artifactId, name: more.name, parts: parts(text) },
        append: more.append ?? false,
        lastChunk: more.lastChunk ?? false,
      });
    if (!task) {
      bus.publish({
        kind: 'task',
        id: taskId,
        contextId,
        status: { state: 'submitted', timestamp: now() },
        history: [userMessage],
      });
    }
    status('working');
    if (answered) {
      artifact('paint', `A bucket of ${text}`);
      status('completed', 'Done', true);
    } else if (word === 'echo') {
      artifact('echo', rest.join(' '), { name: 'Echo' });
      status('completed', undefined, true);
    } else if (word === 'chunks') {
      const stepwise = rest[0] === 'stepwise';
      for (const [index, chunk] of CHUNKS.entries()) {
        if (index && stepwise) await this.step(taskId);
        artifact('numbers', chunk, {
          append: index > 0,
          lastChunk: index + 1 === CHUNKS.length,
        });
      }
      if (stepwise) await this.step(taskId);
      status('completed', undefined, true);
    } else if (word === 'ask') {
      status('input-required', 'Which colour?', true);
    } else if (word === 'hold') {
      await new Promise((release) => this.held.set(taskId, release));
      this.held.delete(taskId);
      status('canceled', undefined, true);
    } else if (word === 'fail') {
      status('failed', 'It broke', true);
    } else {
      status('rejected', `No such word: ${word}`, true);
    }
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    const release = this.held.get(taskId);
    if (release) {
      release();
      return;
    }
    bus.publish({
      kind: 'status-update',
      taskId,
      contextId: '',
      status: { state: 'canceled', timestamp: new Date().toISOString() },
      final: true,
    });
    bus.finished();
  }
}

const app = express();
const listener = app.listen(0, '127.0.0.1');
await new Promise((ready) => listener.once('listening', ready));
const http = `http://127.0.0.1:${listener.address().port}`;

const rpc = new Server();
const rpcPort = await new Promise((ready, failed) =>
  rpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
    error ? failed(error) : ready(port),
  ),
);

const words = 'Does what the first word of a message says.';
const card = {
  name: 'Words',
  description: words,
  version: '1',
  protocolVersion: '0.3.0',
  url: `${http}/rpc`,
  preferredTransport: 'JSONRPC',
  additionalInterfaces: [
    { url: `${http}/rpc`, transport: 'JSONRPC' },
    { url: `${http}/rest`, transport: 'HTTP+JSON' },
    // The SDK's own examples name gRPC servers without a scheme.
    { url: `127.0.0.1:${rpcPort}`, transport: 'GRPC' },
  ],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 'words', name: 'Words', description: words, tags: ['test'] }],
};

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Words());
const served = { requestHandler, userBuilder: UserBuilder.noAuthentication };
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler(served));
app.use('/rest', restHandler(served));
rpc.addService(A2AService, grpcService(served));

console.log(`${http}/${AGENT_CARD_PATH}`);

process.stdin.resume();
process.stdin.once('end', () => process.exit(0));
